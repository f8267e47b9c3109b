#include "tools/brokerctl/arguments/other_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "common/ids.hpp"

namespace leasehold::brokerctl {
namespace {

constexpr std::string_view kNouns[] = {"tenant", "lease",      "worker", "key",     "extent",
                                       "prefix", "quarantine", "action", "request", "adapter"};
constexpr std::string_view kCreate = " create add new make apply register set edit update patch ";
constexpr std::string_view kChange = " set edit update patch ";
constexpr std::string_view kDelete = " delete del rm remove destroy unregister ";
constexpr std::string_view kStop = " stop kill cancel terminate evict ";
constexpr std::string_view kList = " get ls list show ";
constexpr std::string_view kDescribe = " describe inspect info show cat ";

struct Row {
  std::string_view words;  ///< Each between blanks.
  std::string_view noun;   ///< Singular; empty: any noun or none.
  std::string_view use;    ///< {} is the given name, or `placeholder`.
  std::string_view placeholder = "NAME";
};

/// The first row that fits is used.
constexpr Row kRows[] = {
    {kCreate, "tenant", "brokerctl tenants admit {}"},
    {kChange, "key", "brokerctl keys update {}", "KEY"},
    {kCreate, "key", "brokerctl keys create --tenant NAME"},
    {kCreate, "prefix", "brokerctl prefix publish --file FILE --worker NAME"},
    {kCreate, "adapter", "brokerctl adapters add {} --file FILE --tenant NAME"},
    {kCreate, "worker", "leasehold-worker --name {}"},
    {kCreate, "lease", "leasehold-tenant --tenant NAME --prompt TEXT"},
    {kCreate, "", "brokerctl tenants admit NAME, or brokerctl keys create --tenant NAME"},
    {kDelete, "tenant", "brokerctl tenants remove {}"},
    {kDelete, "key", "brokerctl keys revoke {}", "KEY"},
    {kDelete, "lease", "brokerctl revoke {}", "LEASE"},
    {kDelete, "prefix", "brokerctl revoke {}", "LEASE"},
    {kDelete, "adapter", "brokerctl adapters remove {}"},
    {kDelete, "worker", "brokerctl drain --worker {}"},
    {kDelete, "request", "brokerctl requests cancel {}", "ID"},
    {kDelete, "extent", "brokerctl quarantine release extent:{} --reason TEXT", "ID"},
    {kDelete, "",
     "brokerctl tenants remove NAME, brokerctl keys revoke KEY, or brokerctl revoke LEASE"},
    {kStop, "tenant", "brokerctl revoke --tenant {}"},
    {kStop, "adapter", "brokerctl revoke --adapter {}"},
    {kStop, "worker", "brokerctl drain --worker {}"},
    {kStop, "key", "brokerctl keys revoke {}", "KEY"},
    {kStop, "request", "brokerctl requests cancel {}", "ID"},
    {kStop, "lease", "brokerctl revoke {}", "LEASE"},
    {" cancel ", "", "brokerctl requests cancel {}", "ID"},
    {kStop, "", "brokerctl revoke {}", "LEASE"},
    {" revoke ", "tenant", "brokerctl revoke --tenant {}"},
    {" revoke drain timeline ", "lease", "brokerctl VERB {}", "LEASE"},
    {" drain cordon ", "", "brokerctl drain --worker {}"},
    {" undrain uncordon ", "tenant", "brokerctl undrain --tenant {}"},
    {" undrain uncordon ", "", "brokerctl undrain --worker {}"},
    {" ls list ", "", "brokerctl get leases, or a noun alone, such as brokerctl tenants"},
    {kDescribe, "tenant", "brokerctl describe tenant {}"},
    {kDescribe, "lease", "brokerctl describe lease {}", "LEASE"},
    {kDescribe, "worker", "brokerctl describe worker {}"},
    {kDescribe, "key", "brokerctl describe key {}", "KEY"},
    {kDescribe, "adapter", "brokerctl describe adapter {}"},
    {kDescribe, "extent", "brokerctl describe extent {}", "ID"},
    {kDescribe, "request", "brokerctl get request {} -o wide", "ID"},
    {" wait ", "", "brokerctl workers --wait ready"},
    {" show cat ", "", "brokerctl get NOUN, or brokerctl describe NOUN NAME"},
    {" ps ", "", "brokerctl top, or brokerctl workers"},
    {" info stat stats health ping inspect ", "", "brokerctl status"},
    {" log logs journal ", "", "brokerctl events --follow"},
    {" history ", "", "brokerctl actions"},
    {" start restart reload enable ", "", "systemctl restart leasehold-broker"},
    {" run exec chat ", "", "leasehold-tenant --tenant NAME --prompt TEXT"},
    {" version ", "", "brokerctl --version"},
};

/// The singular of a noun; empty for another word.
std::string_view noun_of(std::string_view word) {
  if (word == "prefixes") return "prefix";
  const auto found = std::ranges::find_if(kNouns, [&](std::string_view noun) {
    return word == noun || (word.ends_with('s') && word.substr(0, word.size() - 1) == noun);
  });
  return found == std::end(kNouns) ? "" : *found;
}

/// The words that the user typed, whichever of verb and noun came first.
struct Typed {
  std::string_view verb, noun;
  std::string name;  ///< Empty: none, or one that could not be a name.
};

Typed read(std::span<const std::string> words) {
  std::vector<std::string> plain;
  for (const std::string& word : words)
    if (!word.starts_with('-')) plain.push_back(word);
  plain.resize(3);
  const bool noun_first = !noun_of(words[0]).empty();
  const std::string& second = plain[1];
  const bool has_noun = noun_first || !noun_of(second).empty();
  Typed typed{.verb = words[noun_first && words.size() > 1 ? 1 : 0],
              .noun = noun_of(noun_first ? words[0] : second),
              .name = has_noun ? plain[2] : second};
  if (!has_noun && LeaseId::parse(typed.name)) typed.noun = "lease";
  const auto slash = typed.name.find('/');  // TENANT/ID names a request
  const bool is_request = slash != std::string::npos &&
                          TenantId::parse(typed.name.substr(0, slash)) &&
                          TenantId::parse(typed.name.substr(slash + 1));
  if (!has_noun && is_request) typed.noun = "request";
  if (!TenantId::parse(typed.name) && !(is_request && typed.noun == "request")) typed.name.clear();
  return typed;
}

}  // namespace

std::string command_for(std::span<const std::string> words) {
  if (words.empty()) return "";
  const Typed typed = read(words);
  if (kList.contains(fmt::format(" {} ", typed.verb)) && !typed.noun.empty() && typed.name.empty())
    return fmt::format("brokerctl get {}", typed.noun);
  if (typed.verb == "get" && !typed.noun.empty())
    return fmt::format("brokerctl get {} {}", typed.noun, typed.name);
  const auto row = std::ranges::find_if(kRows, [&](const Row& each) {
    return each.words.contains(fmt::format(" {} ", typed.verb)) &&
           (each.noun.empty() || each.noun == typed.noun);
  });
  if (row == std::end(kRows)) return "";
  std::string use(row->use);
  if (const auto at = use.find("VERB"); at != std::string::npos) use.replace(at, 4, typed.verb);
  const auto at = use.find("{}");
  if (at != std::string::npos)
    use.replace(at, 2, typed.name.empty() ? std::string(row->placeholder) : typed.name);
  return use;
}

std::string list_command_for(std::span<const std::string> words) {
  const bool has_more = words.size() > 2 && !words[2].starts_with('-');
  if (words.size() < 2 || has_more || !TenantId::parse(words[1])) return "";
  const std::string_view noun = noun_of(words[0]);
  return noun.empty() || noun == "action" ? "" : fmt::format("brokerctl get {} {}", noun, words[1]);
}

}  // namespace leasehold::brokerctl
