#include "tools/brokerctl/explain_error.hpp"

#include <fmt/format.h>

#include <charconv>
#include <nlohmann/json.hpp>
#include <vector>

#include "common/cli/suggest.hpp"
#include "tools/cli/json_text.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::brokerctl {
namespace {

using wire::Json;

std::vector<Errc> all_codes() {
  std::vector<Errc> codes;
  for (int i = 0; i < kErrcCount; ++i) codes.push_back(static_cast<Errc>(i));
  return codes;
}

std::optional<Errc> find_code(const std::string& word) {
  int number = 0;
  const char* const end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, number);
  if (error == std::errc() && stopped == end) return errc_from_exit_code(number);
  return errc_from_name(word);
}

std::string_view scope_text(FailureScope scope) {
  switch (scope) {
    case FailureScope::Tenant:
      return "tenant: the request, its lease or its tenant; others go on";
    case FailureScope::Engine:
      return "engine: every tenant of the worker";
    case FailureScope::Shared:
      return "shared: the requests that read a published text";
    case FailureScope::Adapter:
      return "adapter: the requests that use one adapter";
  }
  return "";
}

Json json_of(Errc code) {
  return {{"code", name(code)},
          {"exit_code", exit_code(code)},
          {"meaning", error_meaning(code)},
          {"scope", name(failure_scope(code))},
          {"retryable", is_retryable(code)},
          {"next", error_hint(code)}};
}

PrintText describe(Errc code) {
  return {.text = fmt::format(
              "{} (exit code {})\n{}\n\nscope  {}\nretry  {}\nnext   {}\n", name(code),
              exit_code(code), error_meaning(code), scope_text(failure_scope(code)),
              is_retryable(code) ? "the same call may succeed later" : "the same call fails again",
              error_hint(code)),
          .json = cli::json_text(json_of(code), 2) + '\n'};
}

PrintText list_codes() {
  cli::Table table{.columns = {{"EXIT", true}, {"CODE"}, {"RETRY"}, {"MEANING"}}};
  Json items = Json::array();
  for (const Errc code : all_codes()) {
    table.rows.push_back({std::to_string(exit_code(code)), std::string(name(code)),
                          is_retryable(code) ? "yes" : "no", std::string(error_meaning(code))});
    items.push_back(json_of(code));
  }
  return {.text = cli::render(table),
          .json = cli::json_text(Json{{"items", std::move(items)}}, 2) + '\n'};
}

}  // namespace

std::vector<std::string> error_code_names() {
  std::vector<std::string> names;
  for (const Errc code : all_codes()) names.emplace_back(name(code));
  return names;
}

Result<PrintText> explain_error(const std::string& word) {
  if (word.empty()) return list_codes();
  if (const auto code = find_code(word)) return describe(*code);
  const std::string near = nearest(word, error_code_names());
  return fail(Errc::BadRequest, fmt::format("there is no error code '{}'; {}", word,
                                            near.empty() ? "`brokerctl explain` lists all"
                                                         : "did you mean '" + near + "'?"));
}

}  // namespace leasehold::brokerctl
