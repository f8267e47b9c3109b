#include "worker/model_names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/cli/terminal_text.hpp"
#include "common/utf8.hpp"
#include "ipc/control/messages/worker.hpp"
#include "ipc/control/tokens/text_identity.hpp"

namespace leasehold {
namespace {

bool is_printable_text(std::string_view text) {
  if (!is_utf8(text)) return false;
  while (!text.empty())
    if (!is_printable(take_code_point(text))) return false;
  return true;
}

}  // namespace

std::string check_model_name(const std::string& name) {
  if (const auto parsed = ModelName::parse(name); !parsed) return parsed.error().detail;
  if (!is_printable_text(name))
    return fmt::format("'{}' has characters that are not printable", printable_excerpt(name));
  if (name.front() == ' ' || name.back() == ' ')
    return fmt::format("'{}' begins or ends with a space; leave it out", name);
  if (!name.starts_with(ModelName::kContentPrefix)) return {};
  return fmt::format("'{}' names a content, by which a request finds the model anyway; use another",
                     name);
}

Result<void> check_model_names(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 1 + wire::WorkerReady::kMaxAliases;
  if (names.size() > kMost) {
    return fail(Errc::BadRequest,
                fmt::format("--name-as has {} names; a model has at most {}", names.size(), kMost));
  }
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::find(names.begin(), name, *name) != name)
      return fail(Errc::BadRequest, fmt::format("--name-as has '{}' twice; leave one out", *name));
  }
  return {};
}

}  // namespace leasehold
