#include "tests/checks/soak/models/models_judge.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "common/errc.hpp"
#include "tests/checks/soak/judge_checks.hpp"
#include "tools/cli/table.hpp"

namespace leasehold::soak {
namespace {

constexpr int kFirstSignal = 128;
constexpr int kModels = 2;

bool begins_with(const std::vector<std::int32_t>& whole, const std::vector<std::int32_t>& part) {
  return part.size() <= whole.size() &&
         std::ranges::equal(part, std::span(whole).first(part.size()));
}

demo::Check whole_texts_are_undisturbed(const ModelsHistory& history) {
  Finding finding("every text that ends well is the undisturbed text of its model", "whole texts");
  std::set<std::string> models;
  for (const ModelText& text : history.texts) {
    if (!text.record.completed) continue;
    finding.checked();
    models.insert(text.model);
    if (text.record.tokens != text.undisturbed)
      finding.wrong(fmt::format("{} of {}", text.record.name, text.model));
  }
  if (models.size() < kModels) finding.wrong("texts of fewer than two models ended well");
  return finding.check();
}

demo::Check other_texts_end_typed(const ModelsHistory& history) {
  Finding finding("every other text is its beginning, and its end has an error code",
                  "texts that ended early");
  for (const ModelText& text : history.texts) {
    if (text.record.completed) continue;
    finding.checked();
    if (!begins_with(text.undisturbed, text.record.tokens))
      finding.wrong(fmt::format("{} of {} got other tokens", text.record.name, text.model));
    if (!text.record.failed || !errc_from_exit_code(text.exit_status))
      finding.wrong(fmt::format("{} ended with status {}", text.record.name, text.exit_status));
  }
  return finding.check();
}

demo::Check programs_end_typed(const ModelsHistory& history) {
  Finding finding("no broker ends, and workers end with an error code", "ends of programs");
  finding.checked();  // counts the broker, which must not end
  for (const ExitRecord& end : history.ends) {
    finding.checked();
    const bool is_typed = errc_from_exit_code(end.status).has_value();
    if (end.program == "broker" || end.status >= kFirstSignal || !is_typed)
      finding.wrong(fmt::format("{} ended with status {}", end.program, end.status));
  }
  return finding.check();
}

demo::Check revoked_without_reader(const ModelsHistory& history) {
  Finding finding("leases are revoked while nothing reads the logs", "such revocations");
  finding.checked(history.revoked_without_reader);
  return finding.check();
}

demo::Check serves_afterwards(const ModelsHistory& history) {
  Finding finding("once every file is whole again, every tenant gets its text", "texts");
  finding.checked(history.calm_texts);
  return finding.check();
}

demo::Check every_action_ran(const ModelsHistory& history) {
  Finding finding("every kind of disturbance happened", "kinds");
  for (int i = 0; i < kModelActionCount; ++i) {
    finding.checked();
    if (history.actions[static_cast<std::size_t>(i)] == 0)
      finding.wrong(std::string(name(static_cast<ModelAction>(i))) + " never happened");
  }
  return finding.check();
}

}  // namespace

std::vector<demo::Check> judge_models(const ModelsHistory& history) {
  return {whole_texts_are_undisturbed(history), other_texts_end_typed(history),
          programs_end_typed(history),          revoked_without_reader(history),
          serves_afterwards(history),           every_action_ran(history)};
}

std::string models_text(const ModelsHistory& history, const std::vector<demo::Check>& checks) {
  cli::Table table{.columns = {{"WHAT"}, {"COUNT", true}}};
  for (int i = 0; i < kModelActionCount; ++i) {
    table.rows.push_back({std::string(name(static_cast<ModelAction>(i))),
                          std::to_string(history.actions[static_cast<std::size_t>(i)])});
  }
  std::map<std::string, std::uint64_t> ends;
  for (const ModelText& text : history.texts)
    ++ends[text.record.completed ? "whole texts"
                                 : "texts ended by " + text.record.reported.back().why];
  for (const ExitRecord& end : history.ends) {
    const auto code = errc_from_exit_code(end.status);
    ++ends["workers ended by " + (code ? std::string(name(*code)) : std::to_string(end.status))];
  }
  for (const auto& [what, count] : ends) table.rows.push_back({what, std::to_string(count)});
  std::string text = cli::render(table) + "\n";
  for (const demo::Check& check : checks)
    text += fmt::format("{}  {} ({})\n", check.ok ? "ok    " : "FAILED", check.promise, check.seen);
  return text;
}

}  // namespace leasehold::soak
