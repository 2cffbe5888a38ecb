"""The store: every state of a workspace as chunks, packs, trees and revisions over one small object interface."""
