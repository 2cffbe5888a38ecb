/** Files of a workspace, a sandbox or a session, without running commands. What is missing is a `not_found` error. */
import type { Abortable, Bytes, Changing, Content, FileStat, ReadOptions, WriteOptions } from "./types.js";
import type { Http } from "./http.js";
/** @import { Abortable, Bytes, Changing, Content, FileStat, ReadOptions, WriteOptions } from "./types.js" */
/** @import { Http } from "./http.js" */
export declare class Files {
    #private;
    /**
     * @param {Http} http
     * @param {string} place
     * @param {{ home?: string, session?: string }} [view] `home` is where relative paths begin; else the session's
     * working directory is
     */
    constructor(http: Http, place: string, { home, session }?: {
        home?: string;
        session?: string;
    });
    /**
     * The whole content, or the bytes from `start` to before `end`.
     * @param {string} path
     * @param {ReadOptions} [options]
     * @returns {Promise<Bytes>}
     */
    read(path: string, options?: ReadOptions): Promise<Bytes>;
    /**
     * The content as UTF-8 text. Other content is refused: as text it could not be written back.
     * @param {string} path
     * @param {ReadOptions} [options]
     * @returns {Promise<string>}
     */
    readText(path: string, options?: ReadOptions): Promise<string>;
    /**
     * The content as it comes; leaving the loop ends the transfer.
     * @param {string} path
     * @param {ReadOptions} [options]
     * @returns {AsyncGenerator<Bytes, void, void>}
     */
    readStream(path: string, options?: ReadOptions): AsyncGenerator<Bytes, void, void>;
    /**
     * Store a content; missing directories are made unless `parents` is false. The old content stays until the new one is
     * whole.
     * @param {string} path
     * @param {Content} content
     * @param {WriteOptions} [options]
     * @returns {Promise<FileStat>}
     */
    write(path: string, content: Content, options?: WriteOptions): Promise<FileStat>;
    /**
     * What is known about a path; `follow: false` looks at a link itself.
     * @param {string} path
     * @param {Abortable & { follow?: boolean }} [options]
     * @returns {Promise<FileStat>}
     */
    stat(path: string, options?: Abortable & {
        follow?: boolean;
    }): Promise<FileStat>;
    /**
     * @param {string} path
     * @param {Abortable} [options]
     * @returns {Promise<boolean>}
     */
    exists(path: string, options?: Abortable): Promise<boolean>;
    /**
     * The names in a directory, sorted.
     * @param {string} [path]
     * @param {Abortable} [options]
     * @returns {Promise<string[]>}
     */
    list(path?: string, options?: Abortable): Promise<string[]>;
    /**
     * What is in a directory, with stats, in one request.
     * @param {string} [path]
     * @param {Abortable} [options]
     * @returns {Promise<FileStat[]>}
     */
    entries(path?: string, options?: Abortable): Promise<FileStat[]>;
    /**
     * Make a directory; missing ones on the way too, and one that is there is fine, unless `parents` is false.
     * @param {string} path
     * @param {Changing & { parents?: boolean }} [options]
     * @returns {Promise<FileStat>}
     */
    mkdir(path: string, options?: Changing & {
        parents?: boolean;
    }): Promise<FileStat>;
    /**
     * Remove a file, a link or an empty directory; with `recursive`, all that is below too.
     * @param {string} path
     * @param {Changing & { recursive?: boolean, ifMatch?: string }} [options]
     * @returns {Promise<void>}
     */
    remove(path: string, options?: Changing & {
        recursive?: boolean;
        ifMatch?: string;
    }): Promise<void>;
    /**
     * @param {string} source
     * @param {string} target
     * @param {Changing} [options]
     * @returns {Promise<FileStat>}
     */
    move(source: string, target: string, options?: Changing): Promise<FileStat>;
    /**
     * A file, or a directory with all that is below.
     * @param {string} source
     * @param {string} target
     * @param {Changing} [options]
     * @returns {Promise<FileStat>}
     */
    copy(source: string, target: string, options?: Changing): Promise<FileStat>;
    /**
     * A symbolic link at `path` that points to `target`.
     * @param {string} path
     * @param {string} target
     * @param {Changing} [options]
     * @returns {Promise<FileStat>}
     */
    link(path: string, target: string, options?: Changing): Promise<FileStat>;
    /**
     * @param {string} path
     * @param {{ mode?: number, mtime?: Date, size?: number }} attributes
     * @param {Changing} [options]
     * @returns {Promise<FileStat>}
     */
    setAttributes(path: string, attributes: {
        mode?: number;
        mtime?: Date;
        size?: number;
    }, options?: Changing): Promise<FileStat>;
}
