#include "tools/cell/decide/ledger.hpp"

#include <algorithm>
#include <set>

#include "tools/cell/decide/record_text.hpp"

namespace leasehold::cell {
namespace {

/// Hosts still run under the parts that a deleted ledger had.
constexpr std::string_view kRestoreLedger =
    "restore its earlier value, or stop the hosts of the cell before you delete the key";

Result<void> check(std::string_view key, const Ledger& ledger) {
  const auto wrong = [&](const std::string& why) { return wrong_ledger(key, why); };
  std::set<PartOwner> owners;
  for (const Part& part : ledger.parts)
    if (!owners.insert(part.owner).second) return wrong(name_of(part.owner) + " has two parts");
  for (const Part& part : ledger.parts) {
    if (!part.instead_of) continue;
    const Part* replaced = ledger.find(*part.instead_of);
    if (part.instead_of->host == part.owner.host || (replaced && replaced->instead_of))
      return wrong(name_of(part.owner) + " replaces a part that cannot be replaced");
  }
  return {};
}

}  // namespace

void describe(Is<Part> auto& part, auto& fields) {
  describe(part.owner, fields);
  describe(part.share, fields);
  fields.with_default("demand", part.demand, Share());
  fields.field("as_of", part.as_of.value, kRevisions);
  fields.field("instead_of", part.instead_of);
}

void describe(Is<Ledger> auto& ledger, auto& fields) {
  fields.field("parts", ledger.parts, MaxItems{Ledger::kMaxParts});
}

std::string name_of(const PartOwner& owner) {
  return fmt::format("{} ({})", owner.host.value, owner.incarnation.value);
}

std::unexpected<Error> wrong_ledger(std::string_view key, std::string_view why) {
  return fail(Errc::BadRequest,
              fmt::format("the value of {} in etcd is wrong: {}; {}", key, why, kRestoreLedger));
}

const Part* Ledger::find(const PartOwner& owner) const {
  const auto found = std::ranges::find(parts, owner, &Part::owner);
  return found == parts.end() ? nullptr : &*found;
}

bool counts(const PartOwner& owner, const Incarnations& members) {
  const auto found = members.find(owner.host);
  return found != members.end() && found->second == owner.incarnation;
}

Share replacements_of(const PartOwner& owner, const Ledger& ledger) {
  Share sum;
  for (const Part& part : ledger.parts)
    if (part.instead_of == owner) sum = sum + part.share;
  return sum;
}

bool is_paired(const Part& part, const Ledger& ledger) {
  return part.instead_of || !replacements_of(part.owner, ledger).is_zero();
}

Share counting_sum(const Ledger& ledger, const Incarnations& members) {
  Share sum;
  std::map<PartOwner, Share> replacing;  // by the replaced part, if it counts
  for (const Part& part : ledger.parts) {
    if (!counts(part.owner, members)) continue;
    const bool replaces = part.instead_of && counts(*part.instead_of, members) &&
                          ledger.find(*part.instead_of) != nullptr;
    Share& total = replaces ? replacing[*part.instead_of] : sum;
    total = total + part.share;
  }
  // What the replacements have beyond the replaced part.
  for (const auto& [owner, share] : replacing)
    sum = sum + without(share, ledger.find(owner)->share);
  return sum;
}

Result<Ledger> read_ledger(std::string_view key, std::string_view value) {
  Ledger ledger = TRY(read_record<Ledger>(key, value, kRestoreLedger));
  TRY(check(key, ledger));
  return ledger;
}

std::string text_of(const Ledger& ledger) {
  return record_text(ledger);
}

}  // namespace leasehold::cell
