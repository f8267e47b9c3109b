#include "tests/checks/attack/attacks.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

namespace leasehold::attack {
namespace {

std::set<std::string_view> names_of(const Attacker& attacker,
                                    const std::vector<std::string>& without = {}) {
  std::set<std::string_view> names;
  for (const Attack& attack : attacks_of(attacker, without)) names.insert(attack.name);
  return names;
}

}  // namespace

TEST_CASE("attacks: tenants and strangers together make each attack, each with a name of its own") {
  auto all = names_of({.is_tenant = true, .has_own_user = true, .has_http = true});
  all.merge(names_of({.is_tenant = false, .has_own_user = true}));
  CHECK(all.size() == attacks().size());
}

TEST_CASE("attacks: the broker's own user does not attack the broker") {
  const auto own = names_of({.is_tenant = false, .has_own_user = true});
  const auto same = names_of({.is_tenant = false, .has_own_user = false});
  CHECK(own.contains("silent connections at the broker"));
  CHECK_FALSE(same.contains("silent connections at the broker"));
  CHECK(same.contains("silent connections"));
  CHECK(std::ranges::includes(own, same));
}

TEST_CASE("attacks: those over HTTP need its server") {
  CHECK(names_of({.is_tenant = true, .has_http = true}).contains("framing without end"));
  CHECK_FALSE(names_of({.is_tenant = true}).contains("framing without end"));
  CHECK_FALSE(names_of({.has_http = true}).contains("expensive bodies"));
}

TEST_CASE("attacks: each can be left out by its name") {
  for (const Attack& attack : attacks()) {
    const Attacker attacker{
        .is_tenant = attack.needs_tenant, .has_own_user = true, .has_http = true};
    const auto rest = names_of(attacker, {std::string(attack.name)});
    CHECK_FALSE(rest.contains(attack.name));
    CHECK(rest.size() + 1 == names_of(attacker).size());
  }
}

}  // namespace leasehold::attack
