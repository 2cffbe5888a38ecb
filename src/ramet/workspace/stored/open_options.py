"""`OpenOptions`: how a workspace of a store is opened, as one checked value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ramet.core.resource import Resource
from ramet.native.options import NativeForm, as_native
from ramet.network.network import Network
from ramet.store.commit.ignore_rules import IgnoreRules
from ramet.store.commit.secret_scan import ScanMode, parse_scan_mode
from ramet.workspace.mounts import MountForm
from ramet.workspace.policy import Policy
from ramet.workspace.stored.commit_policy import CommitPolicy, draft_interval
from ramet.workspace.stored.version_pins import check_policies
from ramet.workspace.workspace import Settings

if TYPE_CHECKING:
    from ramet.workspace.stored.workspace import StoredWorkspace


@dataclass(frozen=True)
class OpenOptions:
    """The options of `Store.open`: `OpenOptions(wait=10, commit=CommitPolicy("command"))`. A wrong one raises here."""

    readonly: bool = False
    resources: Mapping[str, Resource] = field(default_factory=dict)
    """Stand in for mounts that were saved without credentials; a directory gets the content that was saved."""
    mounts: Mapping[str, MountForm] = field(default_factory=dict)
    """Mounted as they are, also in the place of a saved mount."""
    secrets: Mapping[str, str] | None = None
    settings: Settings | None = None
    wait: float = 0.0
    """Seconds to wait while another writer holds the workspace."""
    commit: CommitPolicy = field(default_factory=CommitPolicy)
    pins: Mapping[str, str] = field(default_factory=dict)
    """What a revision records of a remote mount, by prefix: `config`, or the `versions` of all paths as well."""
    withhold: Iterable[str] = ()
    """Patterns of files that never enter a revision, beyond the usual places of credentials."""
    scan: ScanMode = "off"
    """Whether new content is searched for secrets: `report` names them on the revision, `refuse` fails the commit."""
    env: Mapping[str, str] = field(default_factory=dict)
    policy: Policy | Mapping[str, Any] | None = None
    prepare: Callable[[StoredWorkspace], None] | None = None
    """Called with the workspace before any other code sees it."""
    native: NativeForm | None = None
    """Whether real programs run in the workspace, and within which bounds."""
    network: Network | Mapping[str, Any] | None = None
    """What commands and programs may reach (`docs/network.md`); None for nothing."""
    drafts: str | float = "off"
    """What survives a kill before the next commit: `off`, `each` call, or all that is older than these seconds."""
    skip_remote: bool = False
    """For a reader: leave out mounts that are saved without content. `ws.restored.problems` names them."""

    ignore_rules: IgnoreRules = field(init=False, repr=False, compare=False)
    """The rules that `withhold` adds to the usual ones."""

    def __post_init__(self) -> None:
        parse_scan_mode(self.scan)
        check_policies(self.pins)
        draft_interval(self.drafts)
        as_native(self.native)
        object.__setattr__(self, "network", Network.of(self.network))
        object.__setattr__(self, "withhold", tuple(self.withhold))
        object.__setattr__(self, "ignore_rules", IgnoreRules(self.withhold))
