#include "tests/checks/gpu_check/oracle_file.hpp"

#include <fstream>
#include <nlohmann/json.hpp>

namespace leasehold::gpu_check {

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
