#include "tools/verify/report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/cli/table.hpp"

namespace leasehold::verify {
namespace {

using nlohmann::json;
using wire::ErasureState;

/// The most leases that the text lists; JSON lists all.
constexpr std::size_t kMaxListed = 50;

struct Explained {
  std::string_view name;
  std::string_view words;
};

/// How the end of memory was shown, by the name of its MemoryFate.
constexpr std::array kEnds{
    Explained{"verified_zero",
              "the broker released the pages and then found none allocated: reads as zeros"},
    Explained{"released_by_driver",
              "the GPU driver reported the memory free after the worker's process had ended"},
    Explained{
        "freed_unchecked",
        "no process could reach it any more, so the kernel freed it; the broker could not check"},
    Explained{"cleared_for_reuse", "cleared on the GPU, and lent again to the same worker process"},
    Explained{"never_lent", "reserved, but no process received it"},
    Explained{"adopted_by",
              "handed with its content to a later lease of the same tenant, where it "
              "is counted again"},
};

constexpr std::array kProofs{
    Explained{"LaunchQuiet", "the worker had ended all work that could reach the memory"},
    Explained{"WorkerAck", "the worker reported that its last work with the memory had ended"},
    Explained{"ProcessExit", "the worker's process had ended"},
    Explained{"NeverMapped", "the worker had never received the memory"},
    Explained{"MachineRestart", "the machine had restarted"},
};

constexpr std::array kOpenStates{
    Explained{"open", "the lease has not ended, or its memory is not verified yet"},
    Explained{"held",
              "GPU memory was cleared, but the worker's process that could still reach it "
              "had not ended"},
    Explained{"quarantined",
              "memory was not empty, or not shown to be free; the broker does not "
              "lend it"},
};

/// What the report's words mean.
constexpr std::array kWords{
    Explained{"tenant", "a customer of the operator; a host computes with language models for it"},
    Explained{
        "broker, worker",
        "programs on that host: the broker lends memory and keeps the signed records; workers "
        "compute with the memory"},
    Explained{"lease",
              "the right of one tenant to memory of the host, from its grant to its end; LEASE is "
              "its number"},
    Explained{"extent", "a piece of memory of fixed size"},
    Explained{
        "pool",
        "kv is memory for what a model keeps of a text, and for adapters, which are additions "
        "to a model; swap is memory of the host to which kv memory is copied for a while"},
    Explained{
        "erased",
        "each extent of the lease has come to one of the ends that the report lists, with how "
        "that was shown"},
    Explained{
        "chain, head",
        "the broker's records of all tenants, each with a hash of the one before it; a head is "
        "the signed state of the chain at one time"},
};

// The words of limits_text, one limit each.
constexpr std::array<std::string_view, 8> kLimits{
    "It is about one broker, on one host. If the tenant used several hosts, each has a certificate "
    "of its own, by a key of its own.",
    "It covers memory that Leasehold lent: the KV cache, its swapped-out blocks, and adapters in "
    "leased memory. It does not cover logs, the client's own copies, a worker's scratch memory, "
    "adapter files on disk, or memory of the host's kernel and of other programs.",
    "Records are the broker's own. A person with root on the host could have written false records "
    "before they were signed. No hardware attests them (no TPM, no GPU attestation).",
    "Times are those of the host's clock.",
    "GPU memory that was cleared counts as held until the worker's process that imported it has "
    "ended.",
    "Memory shared by all tenants (published texts, adapters without a tenant) is in a certificate "
    "of its own.",
    "Records that were changed before a head was signed, or removed from the end of the chain, are "
    "found only by comparison with a head that you kept (--head).",
    "It says nothing about leases that were granted after it was signed.",
};

std::string_view words_of(std::span<const Explained> list, std::string_view name) {
  const auto found = std::ranges::find(list, name, &Explained::name);
  return found == list.end() ? "a name that this program does not know" : found->words;
}

std::string date_or_dash(std::int64_t unix_ms) {
  return unix_ms == 0 ? "-" : cli::utc_text(unix_ms / 1000);
}

std::string tenant_name(const Verdict& verdict) {
  const std::string& name = verdict.head.tenant->tenant;
  return name.empty() ? "no tenant (memory shared by all)" : name;
}

std::string lease_count(std::uint64_t count) {
  return fmt::format("{} {}", count, count == 1 ? "lease" : "leases");
}

/// The leases whose first grant the records show.
struct Sums {
  std::uint64_t leases = 0;
  std::uint64_t erased = 0;
  Memory memory;  ///< Of all of them.
  std::map<std::string, std::uint64_t> proofs;
  std::map<std::string, std::uint64_t> reasons;
  std::uint64_t spill_keys = 0;
  std::vector<std::pair<LeaseId, const LeaseAccount*>> not_erased;
};

Sums sums_of(const Verdict& verdict) {
  Sums sums;
  for (const auto& [id, lease] : verdict.leases) {
    if (!lease.is_whole) continue;
    ++sums.leases;
    for (const auto& [key, amount] : lease.memory) sums.memory[key] += amount;
    if (lease.spill_key_destroyed) ++sums.spill_keys;
    if (lease.state != ErasureState::Erased) {
      sums.not_erased.emplace_back(id, &lease);
      continue;
    }
    ++sums.erased;
    if (!lease.proof.empty()) ++sums.proofs[lease.proof];
    if (!lease.reason.empty()) ++sums.reasons[lease.reason];
  }
  return sums;
}

/// Memory that is not erased.
Amount remaining(const LeaseAccount& lease) {
  Amount sum = amount_of(lease.memory, Fate::Open);
  sum += amount_of(lease.memory, Fate::Held);
  return sum += amount_of(lease.memory, Fate::Quarantined);
}

std::string indented(const cli::Table& table) {
  std::string text = "  " + cli::render(table);
  for (std::size_t at = text.find('\n'); at + 1 < text.size(); at = text.find('\n', at + 1))
    text.insert(at + 1, "  ");
  return text;
}

std::string time_text(const Verdict& verdict) {
  if (verdict.after_unix_ms == 0) return "all leases that the tenant ever had";
  return "all leases granted after " + date_or_dash(verdict.after_unix_ms);
}

std::string keys_text(const Verdict& verdict) {
  if (verdict.key_count == 1) return "one key";
  std::string text = fmt::format("{} keys", verdict.key_count);
  if (verdict.lost_keys > 0)
    text +=
        fmt::format(", {} of them lost, so that they do not vouch for the next", verdict.lost_keys);
  return text;
}

std::string heading(const Verdict& verdict) {
  return fmt::format(
      "Tenant:  {}\nTime:    {}, state of {}\nSigner:  {}\nChain:   {}, {} records, {}\n\n",
      tenant_name(verdict), time_text(verdict), date_or_dash(verdict.head.signed_unix_ms),
      verdict.signer.text(), verdict.head.log, verdict.head.size, keys_text(verdict));
}

std::string result_line(const Verdict& verdict, const Sums& sums) {
  const std::string counts =
      fmt::format("{} granted in this time, {} erased", lease_count(sums.leases), sums.erased);
  if (verdict.is_complete()) return fmt::format("COMPLETE: {}.\n\n", counts);
  return fmt::format("NOT COMPLETE: {}; see \"What is not erased\".\n\n", counts);
}

std::string erased_text(const Sums& sums) {
  std::string text = "What was erased, and how it was shown\n";
  cli::Table ends{.columns = {{"POOL"}, {"END"}, {"EXTENTS", true}, {"SIZE", true}, {"MEANING"}}};
  for (const auto& [key, amount] : sums.memory) {
    if (!wire::is_final(key.second) || amount.extents == 0) continue;
    ends.rows.push_back({std::string(name(key.first)), std::string(name(key.second)),
                         fmt::format("{}", amount.extents), cli::bytes_text(amount.bytes),
                         std::string(words_of(kEnds, name(key.second)))});
  }
  if (ends.rows.empty()) return text + "  Nothing.\n\n";
  text += indented(ends);
  text += "  Before that, each lease was fenced: nothing could use its memory any more, because\n";
  for (const auto& [proof, leases] : sums.proofs)
    text += fmt::format("  - {}: {} ({})\n", lease_count(leases), words_of(kProofs, proof), proof);
  text += "  The leases ended for these reasons:";
  for (const auto& [reason, leases] : sums.reasons) text += fmt::format(" {} {},", reason, leases);
  text.back() = '.';
  if (sums.spill_keys > 0) {
    text += fmt::format("\n  For {} the key of blocks in a spill file was destroyed too.",
                        lease_count(sums.spill_keys));
  }
  return text + "\n\n";
}

std::string open_leases_text(const Sums& sums) {
  cli::Table table{.columns = {{"LEASE"},
                               {"STATE"},
                               {"WORKER"},
                               {"GRANTED"},
                               {"REVOKED"},
                               {"EXTENTS", true},
                               {"SIZE", true}}};
  for (const auto& [id, lease] : sums.not_erased) {
    if (table.rows.size() == kMaxListed) break;
    const Amount amount = remaining(*lease);
    table.rows.push_back({to_string(id), std::string(name(lease->state)),
                          cli::or_dash(lease->worker), date_or_dash(lease->granted_unix_ms),
                          date_or_dash(lease->revoked_unix_ms), fmt::format("{}", amount.extents),
                          cli::bytes_text(amount.bytes)});
  }
  std::string text = indented(table);
  if (sums.not_erased.size() > kMaxListed)
    text +=
        fmt::format("  … and {} more; `-o json` lists all.\n", sums.not_erased.size() - kMaxListed);
  for (const Explained& state : kOpenStates) {
    const bool is_used = std::ranges::any_of(
        sums.not_erased, [&](const auto& each) { return name(each.second->state) == state.name; });
    if (is_used) text += fmt::format("  {}: {}.\n", state.name, state.words);
  }
  return text;
}

std::string not_erased_text(const Verdict& verdict, const Sums& sums) {
  std::string text = "What is not erased\n";
  const wire::LeaseCounts& all = verdict.head.tenant->leases;
  const std::uint64_t earlier = all.granted - all.erased - sums.not_erased.size();
  if (!sums.not_erased.empty()) text += open_leases_text(sums);
  if (earlier > 0) {
    text += fmt::format(
        "  {} granted before this time: of all leases, {} open, {} held, {} "
        "quarantined. A certificate since an earlier day names them.\n",
        lease_count(earlier), all.open, all.held, all.quarantined);
  }
  if (verdict.head.waiting > 0) {
    text += fmt::format(
        "  Not known: the host's disk is full, and {} records about leases are not "
        "written yet. Ask for a new certificate later.\n",
        verdict.head.waiting);
  }
  if (verdict.is_complete()) text += "  Nothing.\n";
  return text + '\n';
}

std::string checks_text(const Verdict& verdict) {
  std::string text = fmt::format(
      "What was checked\n  The signature; that the {} records are in the signed chain, unchanged, "
      "and\n  that none of this tenant is left out; that their amounts add up.\n",
      verdict.records);
  if (verdict.kept) {
    text += fmt::format(
        "  The chain continues the head of {} that you kept: its {} records are "
        "unchanged.\n",
        date_or_dash(verdict.kept->signed_unix_ms), verdict.kept->size);
  } else {
    text += "  Not compared with a head that you kept: none was given (--head).\n";
  }
  if (verdict.head.gaps > 0) {
    text += fmt::format(
        "  {} times the host's disk was full, and records were written later, "
        "several as one.\n",
        verdict.head.gaps);
  }
  if (verdict.unchecked_signatures > 0) {
    text += fmt::format("  Not checked: {} more signatures beside the checked one.\n",
                        verdict.unchecked_signatures);
  }
  return text + '\n';
}

/// Breaks a list item into lines that fit a terminal.
std::string wrapped(std::string_view sentence) {
  constexpr std::size_t kWidth = 92;
  std::string text;
  std::string line = "  -";
  while (!sentence.empty()) {
    const std::string_view word = sentence.substr(0, sentence.find(' '));
    sentence.remove_prefix(std::min(sentence.size(), word.size() + 1));
    if (line.size() + 1 + word.size() > kWidth) text += std::exchange(line, "   ") + '\n';
    line += fmt::format(" {}", word);
  }
  return text + line + '\n';
}

json memory_json(const Memory& memory) {
  json items = json::array();
  for (const auto& [key, amount] : memory) {
    if (amount.extents == 0) continue;
    items.push_back({{"pool", name(key.first)},
                     {"fate", name(key.second)},
                     {"extents", amount.extents},
                     {"bytes", amount.bytes}});
  }
  return items;
}

}  // namespace

int exit_code(const Verdict& verdict) {
  return verdict.is_complete() ? kExitComplete : kExitIncomplete;
}

std::string words_text() {
  std::string text = "Words\n";
  for (const Explained& word : kWords)
    text += wrapped(fmt::format("{}: {}", word.name, word.words));
  return text + '\n';
}

std::string limits_text() {
  std::string text = "What a certificate does not prove\n";
  for (const std::string_view limit : kLimits) text += wrapped(limit);
  return text;
}

std::string report_text(const Verdict& verdict) {
  const Sums sums = sums_of(verdict);
  return result_line(verdict, sums) + heading(verdict) + erased_text(sums) +
         not_erased_text(verdict, sums) + checks_text(verdict) + words_text() + limits_text();
}

json report_json(const Verdict& verdict) {
  const Sums sums = sums_of(verdict);
  json not_erased = json::array();
  for (const auto& [id, lease] : sums.not_erased) {
    not_erased.push_back({{"lease", to_string(id)},
                          {"state", name(lease->state)},
                          {"worker", lease->worker},
                          {"granted_unix_ms", lease->granted_unix_ms},
                          {"revoked_unix_ms", lease->revoked_unix_ms},
                          {"memory", memory_json(lease->memory)}});
  }
  json limits = json::array();
  for (const std::string_view limit : kLimits) limits.push_back(limit);
  return {{"result", verdict.is_complete() ? "complete" : "incomplete"},
          {"tenant", verdict.head.tenant->tenant},
          {"after_unix_ms", verdict.after_unix_ms},
          {"signed_unix_ms", verdict.head.signed_unix_ms},
          {"signer", verdict.signer.text()},
          {"log", verdict.head.log},
          {"keys", verdict.key_count},
          {"lost_keys", verdict.lost_keys},
          {"records", verdict.records},
          {"granted", sums.leases},
          {"erased", sums.erased},
          {"not_erased", std::move(not_erased)},
          {"memory", memory_json(sums.memory)},
          {"proofs", sums.proofs},
          {"reasons", sums.reasons},
          {"all_time", verdict.head.tenant->leases.to_json()},
          {"gaps", verdict.head.gaps},
          {"waiting", verdict.head.waiting},
          {"kept_head_size", verdict.kept ? json(verdict.kept->size) : json(nullptr)},
          {"unchecked_signatures", verdict.unchecked_signatures},
          {"does_not_prove", std::move(limits)}};
}

json forged_json(const Error& fault) {
  return {{"result", "forged"}, {"fault", fault.detail}};
}

std::string forged_text(const Error& fault) {
  return fmt::format(
      "NOT VALID: {}.\n\nThis file proves nothing. It was forged or damaged, or it "
      "is not of the chain that the key and\nthe kept head belong to. Compare it "
      "with another copy, and ask the operator.\n",
      fault.detail);
}

}  // namespace leasehold::verify
