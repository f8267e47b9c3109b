#include "tests/checks/soak/models/models_run.hpp"

#include <fmt/format.h>

#include <map>
#include <set>

#include "common/errc.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::soak {
namespace {

using runner::ActionKind;
using runner::Check;
using runner::ExitRecord;
using runner::Finding;
using runner::Record;
using runner::Text;

constexpr int kFirstSignal = 128;
constexpr int kModels = 2;

constexpr runner::ActionShare kShares[] = {
    {ActionKind::KillWorker, 6},   {ActionKind::RevokeLease, 14}, {ActionKind::RevokeWeights, 10},
    {ActionKind::RestoreFile, 24}, {ActionKind::CopyFile, 8},     {ActionKind::ReplaceFile, 7},
    {ActionKind::RewriteFile, 5},  {ActionKind::TruncateFile, 7}, {ActionKind::RemoveFile, 5},
    {ActionKind::StopReader, 8}};

Check whole_texts_are_undisturbed(const Record& record) {
  Finding finding("every text that ends well is the undisturbed text of its model", "whole texts");
  std::set<std::string> models;
  for (const Text& text : record.texts) {
    if (!text.record.completed) continue;
    finding.checked();
    models.insert(text.model);
    if (!runner::text_error(text).empty())
      finding.wrong(fmt::format("{} of {}", text.tenant, text.model));
  }
  if (models.size() < kModels) finding.wrong("texts of fewer than two models ended well");
  return finding.check();
}

Check other_texts_end_typed(const Record& record) {
  Finding finding("every other text is its beginning, and its end has an error code",
                  "texts that ended early");
  for (const Text& text : record.texts) {
    if (text.record.completed) continue;
    finding.checked();
    if (!runner::text_error(text).empty())
      finding.wrong(fmt::format("{} of {} got other tokens", text.tenant, text.model));
    if (!text.record.failed || !errc_from_exit_code(text.exit_status))
      finding.wrong(fmt::format("{} ended with status {}", text.tenant, text.exit_status));
  }
  return finding.check();
}

Check programs_end_typed(const Record& record) {
  Finding finding("no broker ends, and workers end with an error code", "ends of programs");
  finding.checked();  // counts the broker, which must not end
  for (const ExitRecord& end : record.ends) {
    finding.checked();
    const bool is_typed = errc_from_exit_code(end.status).has_value();
    if (end.program == "broker" || end.status >= kFirstSignal || !is_typed)
      finding.wrong(fmt::format("{} ended with status {}", end.program, end.status));
  }
  return finding.check();
}

}  // namespace

const runner::Script kModelScript{
    .shares = kShares, .max_tokens_between = 60, .max_stop_actions = 12};

std::vector<Check> judge_models(const Record& record) {
  return {whole_texts_are_undisturbed(record),
          other_texts_end_typed(record),
          programs_end_typed(record),
          runner::happened("leases are revoked while nothing reads the logs", "such revocations",
                           record.revoked_without_reader),
          runner::happened("once every file is whole again, every tenant gets its text", "texts",
                           record.calm_texts),
          runner::all_happened("every kind of disturbance happened",
                               runner::named_counts(kModelScript, record.actions))};
}

std::string models_text(const Record& record, const std::vector<Check>& checks) {
  cli::Table table{.columns = {{"WHAT"}, {"COUNT", true}}};
  for (const auto& [action, count] : runner::named_counts(kModelScript, record.actions))
    table.rows.push_back({action, std::to_string(count)});
  std::map<std::string, std::uint64_t> ends;
  for (const Text& text : record.texts)
    ++ends[text.record.completed ? "whole texts"
                                 : "texts ended by " + text.record.reported.back().why];
  for (const ExitRecord& end : record.ends) {
    const auto code = errc_from_exit_code(end.status);
    ++ends["workers ended by " + (code ? std::string(name(*code)) : std::to_string(end.status))];
  }
  for (const auto& [what, count] : ends) table.rows.push_back({what, std::to_string(count)});
  std::string text = cli::render(table) + "\n";
  for (const Check& check : checks) text += runner::check_line(check.ok, check.promise, check.seen);
  return text;
}

}  // namespace leasehold::soak
