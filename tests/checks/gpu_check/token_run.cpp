#include "tests/checks/gpu_check/token_run.hpp"

#include <bit>
#include <fstream>
#include <nlohmann/json.hpp>

namespace leasehold::gpu_check {

LocalOptions options_for(const std::string& model, std::size_t n_tokens,
                         LocalPlacement* placement) {
  const auto n_rows = static_cast<std::uint32_t>(n_tokens);
  return {.model_path = model, .placement = placement, .max_rows = n_rows, .positions = n_rows};
}

Result<TokenRun> run_tokens(const LocalOptions& options, std::span<const TokenId> tokens,
                            std::size_t n_wanted, RowsPerStep rows_per_step) {
  const std::unique_ptr<LocalModel> model = TRY(LocalModel::load(options));
  if (!options.adapters.empty()) model->use_adapter(0, 0);
  TokenRun run;
  const bool one_by_one = rows_per_step == RowsPerStep::One;
  const std::size_t n_each = one_by_one ? 1 : tokens.size();
  for (std::size_t from = 0; from < tokens.size(); from += n_each) {
    std::vector<LocalRow> rows;
    std::uint32_t n_logits = 0;
    for (std::size_t i = from; i < from + n_each; ++i) {
      // A step of one row with logits is a decode step, which becomes a graph.
      const bool wants = one_by_one || i + n_wanted >= tokens.size();
      rows.push_back({.token = tokens[i], .wants_logits = wants});
      n_logits += wants ? 1 : 0;
    }
    const std::uint64_t before = model->units();
    TRY(model->forward(rows));
    run.units_of_last_step = model->units() - before;
    for (std::uint32_t i = 0; i < n_logits; ++i) {
      const auto logits = model->logits(i);
      run.logits.emplace_back(logits.begin(), logits.end());
    }
  }
  run.logits.erase(run.logits.begin(), run.logits.end() - static_cast<std::ptrdiff_t>(n_wanted));
  return run;
}

std::size_t count_differing(const std::vector<Logits>& a, const std::vector<Logits>& b) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (std::size_t token = 0; token < a[i].size(); ++token) {
      const auto bits = std::bit_cast<std::uint32_t>(a[i][token]);
      count += bits != std::bit_cast<std::uint32_t>(b[i][token]) ? 1 : 0;
    }
  }
  return count;
}

std::vector<TokenId> OracleCase::tokens() const {
  std::vector<TokenId> all = prompt;
  if (!answers.empty()) all.insert(all.end(), answers.begin(), answers.end() - 1);
  return all;
}

Result<std::vector<OracleCase>> read_oracle(const std::string& model_path) try {
  const std::string path = model_path.substr(0, model_path.rfind(".gguf")) + ".json";
  std::ifstream file(path);
  if (!file) return fail(Errc::FileNotFound, "there is no " + path + "; make the bundle again");
  const nlohmann::json json = nlohmann::json::parse(file);
  std::vector<OracleCase> cases;
  for (const nlohmann::json& from : json.at("cases")) {
    OracleCase& one = cases.emplace_back();
    one.prompt = from.at("prompt").get<std::vector<TokenId>>();
    for (const nlohmann::json& step : from.at("steps")) {
      one.answers.push_back(step.at("token"));
      const nlohmann::json& top = step.at("top");
      one.margins.push_back(top.at(0).at(1).get<double>() - top.at(1).at(1).get<double>());
    }
  }
  return cases;
} catch (const nlohmann::json::exception& error) {
  return fail(Errc::FileCorrupt, "the oracle of " + model_path + " is malformed: " + error.what());
}

}  // namespace leasehold::gpu_check
