#include "ipc/control/tokens/audit_statement.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace leasehold;
using audit::Envelope;
using audit::HeadStatement;
using audit::KeyLinks;
using audit::SigningKey;

namespace {

HeadStatement sample_head() {
  return {.log = std::string(64, 'a'),
          .tree_size = 12,
          .root = std::string(64, 'b'),
          .newest_sequence = 14,
          .newest_hash = std::string(64, 'c'),
          .removed_size = 3,
          .removed_sequence = 3,
          .first_kept_unix_ms = 1'795'996'800'000,
          .signed_unix_ms = 1'796'083'200'000,
          .gaps = {{.since_unix_ms = 5, .until_unix_ms = 6, .granted = 7, .erased = 8}},
          .tenant = audit::TenantHead{.tenant = "t7",
                                      .records = 4,
                                      .newest_hash = std::string(64, 'd'),
                                      .newest_unix_ms = 1'796'083'100'000,
                                      .leases = {.granted = 2, .erased = 1, .open = 1}}};
}

/// Three keys of one log: the first, one that it signed, and one after the secret was lost.
struct Keys {
  SigningKey first = SigningKey::create();
  SigningKey second = SigningKey::create();
  SigningKey unlinked = SigningKey::create();
  std::string log = first.public_key().id();
  std::vector<Envelope> links{audit::introduce(first, nullptr, 1, "", 100),
                              audit::introduce(second, &first, 2, log, 200),
                              audit::introduce(unlinked, nullptr, 3, log, 300)};
};

std::string why_refused(const std::vector<Envelope>& links) {
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
  HeadStatement head = sample_head();
  CHECK(audit::parse_head(audit::payload_of(head)) == head);
  const std::string text = audit::payload_of(head);
  for (std::size_t at = 0; at < text.size(); ++at) {
    std::string other = text;
    other[at] = static_cast<char>(other[at] ^ 1);
    const auto read = audit::parse_head(other);
    CAPTURE(at);
    CHECK_FALSE((read && *read == head));
  }
  CHECK_FALSE(audit::parse_head(" " + text).has_value());
  head.tenant.reset();
  CHECK(audit::parse_head(audit::payload_of(head)) == head);
  CHECK_FALSE(audit::parse_key(text).has_value());
}

TEST_CASE("audit statement: keys lead from one to the next, but not across a lost key") {
  const Keys keys;
  const auto checked = KeyLinks::check(keys.links);
  REQUIRE(checked.has_value());
  CHECK(checked->log() == keys.log);
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
  Keys keys;
  const SigningKey stranger = SigningKey::create();
  std::vector<Envelope> links = keys.links;
  links[1] = audit::introduce(stranger, &keys.unlinked, 2, keys.log, 200);
  CHECK(why_refused(links) == "key 2 of the audit chain names another key as the one before it");
  links = keys.links;
  links[1].signatures = audit::sign(links[1].payload, stranger).signatures;
  CHECK(why_refused(links) == "key 2 of the audit chain has no valid signature");
  links = keys.links;
  links[0].payload[20] ^= 1;
  CHECK(why_refused(links).starts_with("key 1 "));
  links = keys.links;
  links.erase(links.begin() + 1);
  CHECK(why_refused(links).starts_with("key 2 "));
  links = {audit::introduce(stranger, nullptr, 1, keys.log, 100)};
  CHECK(why_refused(links).starts_with("key 1 "));
  CHECK(why_refused({}) == "key 1 of the audit chain is missing");
}
