#include "tools/checks/gpu_check/answers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace leasehold::gpu_check {
namespace {

struct Question {
  const char* text;
  const char* stage;
  std::vector<const char*> numbers;  ///< JSON pointers into the numbers of the stage.
};

const std::array<Question, 5>& questions() {
  static const std::array<Question, 5> kQuestions{{
      {"bits equal to the CPU's",
       "bits",
       {"/bits/int8", "/bits/q8_0_keys", "/bits/logits", "/bits/differing/single",
        "/bits/differing/graphs", "/bits/differing/prompt"}},
      {"kills during kernels", "kills", {"/kills_in_kernel"}},
      {"four clocks with graphs",
       "clocks",
       {"/clocks", "/t_refuse_us", "/t_quiet_us", "/t_error_us", "/t_reuse_us", "/revoke"}},
      {"bandwidth per format", "bandwidth", {"/copy_gb_per_s", "/multiply_tflop_per_s", "/matmul"}},
      {"decode, prefill, batch against the floor", "speed", {"/decode", "/prefill", "/gate_cost"}},
  }};
  return kQuestions;
}

/// Verdicts from the best to the worst.
constexpr std::array kRanks{Verdict::Measured, Verdict::Reached, Verdict::Pass,
                            Verdict::Unknown,  Verdict::Missed,  Verdict::Fail};

Verdict worse(Verdict a, Verdict b) {
  return std::ranges::find(kRanks, a) < std::ranges::find(kRanks, b) ? b : a;
}

Verdict worst_line(const Json& stage) {
  Verdict worst = Verdict::Measured;
  for (const Json& line : stage.value("lines", Json::array()))
    if (const auto entry = entry_from(line)) worst = worse(worst, entry->verdict);
  return worst;
}

bool is_empty_list(const Json& json) {
  return json.is_structured() && json.empty();
}

Json answer(const Question& question, const Json& stage) {
  Json numbers = Json::object();
  Json missing = Json::array();
  const Json written = stage.value("numbers", Json::object());
  for (const char* place : question.numbers) {
    const Json::json_pointer pointer(place);
    if (written.contains(pointer) && !is_empty_list(written.at(pointer))) {
      numbers[pointer] = written.at(pointer);
    } else {
      missing.push_back(place);
    }
  }
  Verdict verdict = worst_line(stage);
  if (!missing.empty()) verdict = worse(verdict, Verdict::Unknown);
  if (stage.value("state", "") == "failed") verdict = Verdict::Fail;
  return {{"question", question.text},
          {"stage", question.stage},
          {"state", stage.value("state", "not run")},
          {"verdict", name(verdict)},
          {"missing", missing},
          {"numbers", numbers}};
}

}  // namespace

Json answers_from(const Json& stages) {
  Json answers = Json::array();
  for (const Question& question : questions()) {
    const auto of_question = [&](const Json& one) {
      return one.value("stage", "") == question.stage;
    };
    const auto found = std::ranges::find_if(stages, of_question);
    answers.push_back(answer(question, found == stages.end() ? Json::object() : *found));
  }
  return answers;
}

std::string text_of_answers(const Json& answers) {
  std::string text = "\nanswers\n";
  for (const Json& one : answers) {
    std::string note = one.at("state");
    for (const Json& key : one.at("missing"))
      note += fmt::format(", no {}", key.get<std::string>());
    text += fmt::format("  {:<9}{:<50} {}\n", one.at("verdict").get<std::string>(),
                        one.at("question").get<std::string>(), note);
  }
  return text;
}

}  // namespace leasehold::gpu_check
