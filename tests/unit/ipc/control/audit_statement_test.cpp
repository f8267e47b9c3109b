#include "ipc/control/tokens/audit_statement.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using audit::KeyLinks;
using audit::SigningKey;
using wire::AuditHead;
using wire::DsseEnvelope;

namespace {

AuditHead sample_head() {
  AuditHead head;
  head.log = std::string(64, 'a');
  head.size = 12;
  head.root = std::string(64, 'b');
  head.sequence = 14;
  head.hash = std::string(64, 'c');
  head.removed_size = 3;
  head.removed_sequence = 3;
  head.first_kept_unix_ms = 1'795'996'800'000;
  head.signed_unix_ms = 1'796'083'200'000;
  head.gaps = 1;
  wire::TenantHead& tenant = head.tenant.emplace();
  tenant.tenant = "t7";
  tenant.records = 4;
  tenant.hash = std::string(64, 'd');
  tenant.unix_ms = 1'796'083'100'000;
  tenant.leases.granted = 2;
  tenant.leases.erased = 1;
  tenant.leases.open = 1;
  return head;
}

/// Three keys of one log: the first, one that it signed, and one after the secret was lost.
struct Keys {
  SigningKey first = SigningKey::create();
  SigningKey second = SigningKey::create();
  SigningKey unlinked = SigningKey::create();
  std::vector<DsseEnvelope> links{audit::introduce(first, nullptr, 100),
                                  audit::introduce(second, &first, 200),
                                  audit::introduce(unlinked, nullptr, 300)};
};

nlohmann::json read_back(const std::string& payload) {
  const auto head = audit::parse_head(payload);
  REQUIRE(head.has_value());
  return head->to_json();
}

std::string why_refused(const std::vector<DsseEnvelope>& links) {
  const auto checked = KeyLinks::check(links);
  REQUIRE_FALSE(checked.has_value());
  CHECK(checked.error().code == Errc::FileCorrupt);
  return checked.error().detail;
}

}  // namespace

TEST_CASE("audit statement: a head is an in-toto statement about the root and the tenant's chain") {
  const auto object = nlohmann::json::parse(audit::payload_of(sample_head()));
  CHECK(object["_type"] == "https://in-toto.io/Statement/v1");
  CHECK(object["predicateType"] == "urn:leasehold:audit-head:1");
  CHECK(object["subject"][0]["digest"]["sha256"] == std::string(64, 'b'));
  CHECK(object["subject"][1]["name"] == "leases of t7");
  CHECK(object["subject"][1]["digest"]["sha256"] == std::string(64, 'd'));
}

TEST_CASE("audit statement: a head is read back from its text, and from no other form of it") {
  AuditHead head = sample_head();
  CHECK(read_back(audit::payload_of(head)) == head.to_json());
  const std::string text = audit::payload_of(head);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = static_cast<char>(other[at] ^ 1);
    const auto read = audit::parse_head(other);
    CAPTURE(at);
    CHECK_FALSE((read && read->to_json() == head.to_json()));
  }
  CHECK_FALSE(audit::parse_head(" " + text).has_value());
  head.tenant.reset();
  CHECK(read_back(audit::payload_of(head)) == head.to_json());
  CHECK_FALSE(audit::parse_key(text).has_value());
}

TEST_CASE("audit statement: keys lead from one to the next, but not across a lost key") {
  const Keys keys;
  const auto checked = KeyLinks::check(keys.links);
  REQUIRE(checked.has_value());
  CHECK(checked->log() == keys.first.public_key().id());
  CHECK(checked->keys()[1].is_linked);
  CHECK_FALSE(checked->keys()[2].is_linked);
  const auto first = keys.first.public_key();
  const auto second = keys.second.public_key();
  const auto unlinked = keys.unlinked.public_key();
  CHECK(checked->leads(first, first));
  CHECK(checked->leads(first, second));
  CHECK_FALSE(checked->leads(second, first));
  CHECK_FALSE(checked->leads(first, unlinked));
  CHECK_FALSE(checked->leads(second, unlinked));
  CHECK(checked->leads(unlinked, unlinked));
  CHECK_FALSE(checked->leads(SigningKey::create().public_key(), unlinked));
}

TEST_CASE("audit statement: a key without the signature of the one before it is refused by name") {
  const Keys keys;
  const SigningKey stranger = SigningKey::create();
  std::vector<DsseEnvelope> links = keys.links;
  links[1] = audit::introduce(stranger, &keys.unlinked, 200);
  CHECK(why_refused(links) == "key 2 of the audit chain names another key as the one before it");
  links = keys.links;
  links[1].signatures = audit::introduce(keys.second, &stranger, 200).signatures;
  CHECK(why_refused(links) == "key 2 of the audit chain has no valid signature");
  links = keys.links;
  links[0].payload[20] ^= 1;
  CHECK(why_refused(links).starts_with("key 1 "));
  links = keys.links;
  links.erase(links.begin());
  CHECK(why_refused(links).starts_with("key 1 "));
  CHECK(why_refused({}) == "key 1 of the audit chain is missing");
}
