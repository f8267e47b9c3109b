"""Checks an erasure certificate independently of leasehold-verify: other language, other libraries.

Written from the header comments of ipc/control/tokens/{audit_key,audit_statement,merkle_tree,
erasure_certificate}.hpp. Raises Forged; otherwise returns the leases by state.
"""
import base64
import hashlib
import json

import nacl.exceptions
import nacl.signing

PAYLOAD_TYPE = "application/vnd.in-toto+json"
ZEROS = "0" * 64


class Forged(Exception):
    pass


def require(condition, why):
    if not condition:
        raise Forged(why)


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def sha256(data):
    return hashlib.sha256(data).digest()


def decode(text):
    data = base64.b64decode(text, validate=True)
    require(base64.b64encode(data).decode() == text, "form of base64")
    return data


def open_envelope(envelope, key):
    """The statement in the envelope, if `key` signed it; else None."""
    payload = decode(envelope["payload"])
    signed = b"DSSEv1 %d %s %d %s" % (
        len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)
    for signature in envelope["signatures"]:
        if signature["keyid"] != sha256(key).hex():
            continue
        try:
            nacl.signing.VerifyKey(key).verify(signed, decode(signature["sig"]))
            return json.loads(payload)
        except nacl.exceptions.BadSignatureError:
            pass
    return None


def key_bytes(text):
    require(text.startswith("ed25519:"), "key")
    return decode(text.removeprefix("ed25519:"))


def check_keys(envelopes):
    """The keys of the log with their links: [(bytes, is_linked)]."""
    keys = []
    for envelope in envelopes:
        stated = json.loads(decode(envelope["payload"]))["predicate"]
        key = key_bytes(stated["key"])
        require(stated["id"] == sha256(key).hex(), "id of a key")
        is_linked = stated["previous"] != ""
        require(not is_linked or keys and sha256(keys[-1][0]).hex() == stated["previous"], "link")
        statement = open_envelope(envelope, keys[-1][0] if is_linked else key)
        require(statement is not None, "signature of a key")
        require(statement["predicateType"] == "urn:leasehold:audit-key:1", "type of a key")
        keys.append((key, is_linked))
    return keys


def trusted_keys(keys, trusted):
    found = [i for i, (key, _) in enumerate(keys) if key == trusted]
    require(found, "the trusted key is not of this log")
    last = found[0]
    while last + 1 < len(keys) and keys[last + 1][1]:
        last += 1
    return [key for key, _ in keys[found[0]:last + 1]]


def root_of(begin, end, leaves, proof):
    if not leaves:
        require(proof, "proof too short")
        return proof.pop(0)
    if end - begin == 1:
        return leaves[0][1]
    half = 1
    while 2 * half < end - begin:
        half *= 2
    middle = begin + half
    left = root_of(begin, middle, [leaf for leaf in leaves if leaf[0] < middle], proof)
    right = root_of(middle, end, [leaf for leaf in leaves if leaf[0] >= middle], proof)
    return sha256(b"\1" + left + right)


def hashes(text):
    data = decode(text)
    require(len(data) % 32 == 0, "proof")
    return [data[i:i + 32] for i in range(0, len(data), 32)]


def check_records(certificate, tenant):
    number, newest, leaves = tenant["records"], tenant["hash"], []
    for entry in reversed(certificate["records"]):
        record = entry["record"]
        digest = sha256(canonical(record).encode())
        require(record["tenant"] == tenant["tenant"], "record of another tenant")
        require(record["tenant_record"] == number and digest.hex() == newest, f"record {number}")
        leaves.insert(0, (entry["leaf"], sha256(b"\0" + digest)))
        number, newest = number - 1, record["tenant_previous"]
    require(number > 0 or newest == ZEROS, "first record")
    return leaves


def states_of(records):
    """What the records' own amounts say about each lease that they show from its beginning."""
    memory, whole = {}, set()
    for entry in records:
        record = entry["record"]
        lease = record["lease"]
        account = memory.setdefault(lease, {})
        if record["record"] == "lease_granted":
            if record.get("opens"):
                whole.add(lease)
            for part in record["granted"]:
                account["open"] = account.get("open", 0) + part["extents"]
            continue
        for part in record["settled"]:
            account[part["from"]] = account.get(part["from"], 0) - part["extents"]
            account[part["to"]] = account.get(part["to"], 0) + part["extents"]
        if lease in whole:
            require(min(account.values()) >= 0, f"lease {lease}")
            require(account.get("open", 0) == record["open_extents"], f"lease {lease}")
    states = {}
    for lease in whole:
        account = memory[lease]
        states[lease] = next((fate for fate in ("open", "quarantined", "held") if account.get(fate)),
                             "erased")
    return states


def check(text, trusted):
    """`text`: bytes. `trusted`: "ed25519:…". Returns {lease: state}."""
    try:
        certificate = json.loads(text)
        require(canonical(certificate).encode() + b"\n" == text, "form")
        require(set(certificate) <= {"format", "head", "keys", "kept", "proof", "records"}, "members")
        require(certificate["format"] == "urn:leasehold:erasure-certificate:1", "format")
        keys = check_keys(certificate["keys"])
        statement = None
        for key in trusted_keys(keys, key_bytes(trusted)):
            statement = statement or open_envelope(certificate["head"], key)
        require(statement is not None, "signature of the head")
        require(statement["predicateType"] == "urn:leasehold:audit-head:1", "type of the head")
        head = statement["predicate"]
        require(head["log"] == sha256(keys[0][0]).hex(), "log")
        leaves = check_records(certificate, head["tenant"])
        proof = hashes(certificate["proof"])
        require(root_of(0, head["size"], leaves, proof).hex() == head["root"] and not proof, "root")
        states = states_of(certificate["records"])
        for state in ("open", "held", "quarantined"):
            require(list(states.values()).count(state) <= head["tenant"]["leases"][state], state)
        return states
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Forged(repr(error)) from error
