//! The tables. Keys grow with time (ids are UUIDv7, nonces count), so inserts touch the right edge of each tree and the
//! size of a table does not matter; nothing random is indexed.

/// Marks the file as ours: `Lych`.
pub(super) const APPLICATION_ID: i64 = 0x4c79_6368;

/// The version of everything below.
pub(super) const VERSION: i64 = 7;

/// Makes an empty file ours.
pub(super) const CREATE: &str = "
CREATE TABLE head (
    id               INTEGER PRIMARY KEY CHECK (id = 1),
    policy_epoch     INTEGER NOT NULL,
    authority_epoch  INTEGER NOT NULL,
    revocation_epoch INTEGER NOT NULL,
    purpose_epoch    INTEGER NOT NULL,
    policy_digest    BLOB,
    last_time        INTEGER NOT NULL,
    -- The tree over the record: size and peaks, `Frontier::to_bytes`.
    frontier         BLOB    NOT NULL
) STRICT;
INSERT INTO head VALUES (1, 0, 0, 0, 0, NULL, 0, x'0000000000000000');

CREATE TABLE applied (
    id       INTEGER PRIMARY KEY CHECK (id = 1),
    digest   BLOB    NOT NULL,
    epoch    INTEGER NOT NULL,
    snapshot BLOB    NOT NULL,
    at       INTEGER NOT NULL
) STRICT;

-- `open` is 1 for what an equal call is held against (dispatched, indeterminate, undelivered), 2 for
-- what waits before dispatch (allowed, escalated), NULL for everything else, which is nearly all.
CREATE TABLE acts (
    id               BLOB PRIMARY KEY,
    state            INTEGER NOT NULL,
    open             INTEGER,
    created_at       INTEGER NOT NULL,
    updated_at       INTEGER NOT NULL,
    twin             BLOB,
    act_digest       BLOB,
    arguments_digest BLOB,
    destination      BLOB,
    salt             BLOB    NOT NULL,
    agent            TEXT    NOT NULL,
    depth            INTEGER NOT NULL,
    delegation       BLOB,
    tool             TEXT,
    function         TEXT,
    class            INTEGER,
    source           INTEGER,
    vouched          INTEGER NOT NULL,
    retry_of         BLOB,
    authority        BLOB,
    holder           BLOB,
    nonce            INTEGER,
    expires_at       INTEGER,
    policy_epoch     INTEGER,
    authority_epoch  INTEGER,
    revocation_epoch INTEGER,
    policy_digest    BLOB,
    effect           BLOB,
    idempotency_key  TEXT,
    ticket           BLOB,
    code             TEXT,
    answered_by      BLOB,
    -- Where in `said`.
    said             INTEGER,
    contradicted     INTEGER NOT NULL,
    undelivered      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX acts_open ON acts (open) WHERE open IS NOT NULL;

-- `kind` 0: an answer, 1: what a read-back needs.
CREATE TABLE sealed (
    act   BLOB    NOT NULL,
    kind  INTEGER NOT NULL,
    bytes BLOB    NOT NULL,
    PRIMARY KEY (act, kind)
) STRICT, WITHOUT ROWID;

-- Evidence, authority and verification of a dispatched act, sealed. Under a number, for a row of an integer key lies in
-- its page whole, and apart from `acts`, whose rows are written again. `ped` and `sink`: their first leaves in the
-- group's batches.
CREATE TABLE said (
    id      INTEGER PRIMARY KEY,
    batch   INTEGER NOT NULL,
    ped     INTEGER,
    sink    INTEGER NOT NULL,
    objects BLOB    NOT NULL
) STRICT;

-- Leaves and signatures of a group's batches.
CREATE TABLE batches (
    id             INTEGER PRIMARY KEY,
    ped            BLOB NOT NULL,
    ped_signature  BLOB,
    sink           BLOB NOT NULL,
    sink_signature BLOB
) STRICT;

CREATE TABLE used (
    holder BLOB    NOT NULL,
    count  INTEGER NOT NULL,
    PRIMARY KEY (holder, count)
) STRICT, WITHOUT ROWID;

CREATE TABLE tickets (
    id          BLOB PRIMARY KEY,
    state       INTEGER NOT NULL,
    live        INTEGER,
    subject     BLOB    NOT NULL,
    act         BLOB    NOT NULL,
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER NOT NULL,
    decided_at  INTEGER,
    approver    TEXT,
    consumed_by BLOB,
    summary     BLOB,
    -- Last, so that reading the others never touches its pages.
    display     BLOB
) STRICT, WITHOUT ROWID;
-- Pending, or approved and unused; few at any time.
CREATE INDEX tickets_live ON tickets (live) WHERE live IS NOT NULL;
CREATE INDEX tickets_subject ON tickets (subject, id) WHERE live IS NOT NULL;

-- What acts drew on budgets. Keys are ids of delegations, which grow, and zeros for the agent itself. `counts`: acts in
-- the slot `slot` of `slot_ms` and in eight before it, four bytes each.
CREATE TABLE accounts (
    id        BLOB PRIMARY KEY,
    began     INTEGER NOT NULL,
    acts      INTEGER NOT NULL,
    high_risk INTEGER NOT NULL,
    slot_ms   INTEGER NOT NULL,
    slot      INTEGER NOT NULL,
    counts    BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE spent (
    account BLOB NOT NULL,
    unit    TEXT NOT NULL,
    amount  BLOB NOT NULL,
    PRIMARY KEY (account, unit)
) STRICT, WITHOUT ROWID;

CREATE TABLE delegations (
    id         BLOB PRIMARY KEY,
    act        BLOB    NOT NULL,
    made_at    INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    body       BLOB    NOT NULL
) STRICT, WITHOUT ROWID;

-- What approvers signed, as signed. The state of a ticket is believed no further than these bear it out.
CREATE TABLE verdicts (
    ticket   BLOB NOT NULL,
    approver TEXT NOT NULL,
    bytes    BLOB NOT NULL,
    PRIMARY KEY (ticket, approver)
) STRICT, WITHOUT ROWID;

CREATE TABLE revoked (
    subject TEXT PRIMARY KEY,
    at      INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- `terms` and `grant` are the gate's: what was consented to, and what the approver signed of it.
CREATE TABLE consents (
    id           BLOB PRIMARY KEY,
    granted_at   INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL,
    withdrawn_at INTEGER,
    terms        BLOB    NOT NULL,
    grant        BLOB
) STRICT, WITHOUT ROWID;
-- Not withdrawn; few at any time.
CREATE INDEX consents_live ON consents (expires_at) WHERE withdrawn_at IS NULL;

CREATE TABLE counts (
    state INTEGER PRIMARY KEY,
    n     INTEGER NOT NULL
) STRICT;
INSERT INTO counts VALUES (0,0),(1,0),(2,0),(3,0),(4,0),(5,0),(6,0),(7,0),(8,0),(9,0),(10,0),(11,0);

CREATE TABLE record (
    idx   INTEGER PRIMARY KEY,
    leaf  BLOB NOT NULL,
    -- NULL once archived and pruned.
    bytes BLOB
) STRICT;

-- Roots over 256, 256^2 ... lines each; `at` is the tile level (1 to 7) times 2^56, plus the number. Level 0 is
-- `record.leaf`.
CREATE TABLE nodes (
    at   INTEGER PRIMARY KEY,
    hash BLOB NOT NULL
) STRICT;

-- The newest signed heads, in a ring: slots are overwritten, so the pages stay the same few.
CREATE TABLE recent (
    slot INTEGER PRIMARY KEY,
    size INTEGER NOT NULL,
    note BLOB    NOT NULL
) STRICT;

-- The first signed head after every 256 lines, for ever.
CREATE TABLE heads (
    size INTEGER PRIMARY KEY,
    note BLOB NOT NULL
) STRICT;
";
