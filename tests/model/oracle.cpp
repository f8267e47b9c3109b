#include "tests/model/oracle.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace leasehold::testing {
namespace {

using Json = nlohmann::json;

OracleStep read_step(const Json& from) {
  OracleStep step{.token = from.at("token"), .top = {}};
  for (const Json& top : from.at("top")) step.top.push_back({top.at(0), top.at(1)});
  return step;
}

void must(const Result<void>& result) {
  if (!result) throw std::runtime_error(result.error().detail);
}

}  // namespace

std::vector<TokenId> OracleCase::teacher_forced_tokens() const {
  std::vector<TokenId> tokens = prompt;
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) tokens.push_back(steps[i].token);
  return tokens;
}

std::vector<OracleCase> read_oracle(const std::string& model_path, std::string_view ending) {
  std::string path = model_path;
  path.replace(path.rfind(".gguf"), 5, ending);
  std::ifstream file(path);
  std::vector<OracleCase> cases;
  const Json json = Json::parse(file);
  for (const Json& from : json.at("cases")) {
    cases.push_back({.prompt = from.at("prompt"), .steps = {}});
    for (const Json& step : from.at("steps")) cases.back().steps.push_back(read_step(step));
  }
  return cases;
}

std::vector<Logits> teacher_forced_logits(const std::string& model_path, const OracleCase& one,
                                          std::function<void(ModelConfig&)> modify_config,
                                          Arithmetic arithmetic,
                                          const std::vector<LocalAdapter>& adapters) {
  std::vector<LocalRow> rows;
  for (const TokenId token : one.teacher_forced_tokens())
    rows.push_back({.token = token, .wants_logits = rows.size() + 1 >= one.prompt.size()});
  const auto n_rows = static_cast<std::uint32_t>(rows.size());
  auto model = LocalModel::load({.model_path = model_path,
                                 .kv_type = KvType::F32,
                                 .arithmetic = arithmetic,
                                 .max_rows = n_rows,
                                 .positions = n_rows,
                                 .adapters = adapters,
                                 .modify_config = std::move(modify_config)});
  if (!model) throw std::runtime_error(model.error().detail);
  if (!adapters.empty()) (*model)->use_adapter(0, 0);
  must((*model)->forward(rows));
  std::vector<Logits> all;
  for (std::uint32_t i = 0; i < one.steps.size(); ++i) {
    const auto logits = (*model)->logits(i);
    all.emplace_back(logits.begin(), logits.end());
  }
  return all;
}

std::vector<Logits> teacher_forced_logits(PlainModel& model, const OracleCase& one) {
  model.forget();
  std::vector<Logits> all;
  for (const TokenId token : one.teacher_forced_tokens()) all.push_back(model.next(token));
  all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(one.steps.size()));
  return all;
}

void Agreement::compare(const OracleCase& one, const std::vector<Logits>& ours, double tolerance) {
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    const OracleStep& step = one.steps[i];
    for (const OracleTop& top : step.top) {
      const double difference = std::abs(ours[i][static_cast<std::size_t>(top.token)] - top.logit);
      worst_top = std::max(worst_top, std::isnan(difference) ? HUGE_VAL : difference);
    }
    if (step.top[0].logit - step.top[1].logit <= tolerance) continue;
    ++decided;
    wrong += std::ranges::max_element(ours[i]) - ours[i].begin() != step.token ? 1 : 0;
  }
}

void Agreement::compare_exactly(const std::vector<Logits>& plain, const std::vector<Logits>& ours) {
  for (std::size_t i = 0; i < plain.size(); ++i)
    for (std::size_t token = 0; token < plain[i].size(); ++token) {
      const double difference = std::abs(plain[i][token] - ours[i][token]);
      worst_exact = std::max(worst_exact, std::isnan(difference) ? HUGE_VAL : difference);
    }
}

}  // namespace leasehold::testing
