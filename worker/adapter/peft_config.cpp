#include "worker/adapter/peft_config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "common/utf8.hpp"
#include "worker/adapter/file_json.hpp"

namespace leasehold {
namespace {

using Json = nlohmann::ordered_json;

/// Keys with another value than null, false, nothing or `allowed` change what an adapter computes.
struct OtherMethod {
  const char* key;
  std::string_view what;
  std::string_view allowed = {};
};
constexpr OtherMethod kOtherMethods[] = {
    {"use_dora", "DoRA"},
    {"use_qalora", "QA-LoRA"},
    {"use_bdlora", "block-diagonal LoRA"},
    {"bias", "trained biases", "none"},
    {"lora_bias", "biases of B"},
    {"modules_to_save", "whole modules beside the matrices"},
    {"fan_in_fan_out", "transposed weights"},
    {"layer_replication", "repeated layers"},
    {"target_parameters", "matrices of parameters, such as experts"},
    {"trainable_token_indices", "trained tokens"},
    {"alora_invocation_tokens", "an adapter that starts at a token"},
};

/// Ways of starting a training that leave the base model as it is. Others, such as PiSSA, take a
/// part of its weights into the adapter.
constexpr std::string_view kPlainStarts[] = {"gaussian", "eva", "orthogonal"};

class Fields {
 public:
  Fields(const Json& json, std::string_view path) : json_(&json), path_(path) {}

  std::unexpected<Error> refuse(Errc code, std::string_view key, std::string_view why) const {
    return fail(code, fmt::format("{}: {} {}", path_, key, why));
  }
  /// Null for a missing key.
  const Json& get(const char* key) const {
    static const Json kNull;
    const auto found = json_->find(key);
    return found == json_->end() ? kNull : *found;
  }
  Result<std::uint32_t> rank(std::string_view key, const Json& value) const {
    if (value.is_number_unsigned() && value > 0 && value <= UINT32_MAX)
      return value.get<std::uint32_t>();
    return refuse(Errc::FileCorrupt, key, "is not a rank of 1 or more");
  }
  Result<float> alpha(std::string_view key, const Json& value) const {
    const float alpha = value.is_number() ? value.get<float>() : NAN;
    if (!std::isfinite(alpha)) return refuse(Errc::FileCorrupt, key, "is not a number");
    if (alpha != 0.0F) return alpha;
    return refuse(Errc::UnsupportedModel, key, "is 0, so the adapter changes nothing");
  }
  /// A flag; missing and null count as false.
  Result<bool> flag(const char* key) const {
    const Json& value = get(key);
    if (value.is_null()) return false;
    if (value.is_boolean()) return value.get<bool>();
    return refuse(Errc::FileCorrupt, key, "is not true or false");
  }

  /// An object of values by pattern; missing and null count as empty.
  template <class T, class ReadValue>
  Result<std::vector<std::pair<std::string, T>>> patterns(const char* key, ReadValue read) const {
    const Json& object = get(key);
    std::vector<std::pair<std::string, T>> all;
    if (object.is_null()) return all;
    if (!object.is_object()) return refuse(Errc::FileCorrupt, key, "is not an object");
    for (const auto& [pattern, value] : object.items()) {
      if (!is_plain(pattern))
        return refuse(Errc::UnsupportedModel, key,
                      fmt::format("has the regular expression \"{}\"; name the modules",
                                  printable_excerpt(pattern)));
      all.emplace_back(pattern, TRY(read(key, value)));
    }
    return all;
  }

 private:
  /// PEFT reads patterns as regular expressions. A dot is taken for a dot.
  static bool is_plain(std::string_view pattern) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    return !pattern.empty() && pattern.find_first_not_of(kPlain) == std::string_view::npos;
  }

  const Json* json_;
  std::string_view path_;
};

/// True if `part` is `module` or its end after a dot.
bool ends_module(std::string_view module, std::string_view part) {
  if (!module.ends_with(part)) return false;
  return module.size() == part.size() || module[module.size() - part.size() - 1] == '.';
}

template <class T>
T first_match(const std::vector<std::pair<std::string, T>>& patterns, std::string_view module,
              T otherwise) {
  for (const auto& [pattern, value] : patterns)
    if (ends_module(module, pattern)) return value;
  return otherwise;
}

bool is_unset(const Json& value, std::string_view allowed) {
  if (value.is_null() || value == false) return true;
  if (value.is_string())
    return value.get_ref<const std::string&>() == allowed ||
           value.get_ref<const std::string&>().empty();
  return value.is_structured() && value.empty();
}

Result<void> check_method(const Fields& fields) {
  const Json& type = fields.get("peft_type");
  if (!type.is_string()) return fields.refuse(Errc::FileCorrupt, "peft_type", "is missing");
  if (type != "LORA")
    return fields.refuse(Errc::UnsupportedModel, "peft_type",
                         fmt::format("is {}; this build loads LORA",
                                     printable_excerpt(type.get_ref<const std::string&>())));
  for (const OtherMethod& other : kOtherMethods)
    if (!is_unset(fields.get(other.key), other.allowed))
      return fields.refuse(Errc::UnsupportedModel, other.key,
                           fmt::format("is set: {}; this build loads plain LoRA", other.what));
  const Json& start = fields.get("init_lora_weights");
  const bool is_plain =
      !start.is_string() || std::ranges::find(kPlainStarts, start.get_ref<const std::string&>()) !=
                                std::end(kPlainStarts);
  if (is_plain) return {};
  return fields.refuse(Errc::UnsupportedModel, "init_lora_weights",
                       fmt::format("is {}, which changes the base model; save the adapter as LoRA",
                                   printable_excerpt(start.get_ref<const std::string&>())));
}

/// A list of names; null and a text, which is a regular expression or "all-linear", leave it empty.
Result<std::vector<std::string>> read_targets(const Fields& fields) {
  const Json& value = fields.get("target_modules");
  std::vector<std::string> targets;
  if (value.is_null() || value.is_string()) return targets;
  if (!value.is_array())
    return fields.refuse(Errc::FileCorrupt, "target_modules", "is not a list of names");
  for (const Json& name : value) {
    if (!name.is_string())
      return fields.refuse(Errc::FileCorrupt, "target_modules", "is not a list of names");
    targets.push_back(name.get<std::string>());
  }
  return targets;
}

Result<std::optional<std::vector<std::uint32_t>>> read_layers(const Fields& fields) {
  const Json& value = fields.get("layers_to_transform");
  if (value.is_null()) return std::nullopt;
  const Json list = value.is_array() ? value : Json::array({value});
  std::vector<std::uint32_t> layers;
  for (const Json& layer : list) {
    if (!layer.is_number_unsigned() || layer > UINT32_MAX)
      return fields.refuse(Errc::FileCorrupt, "layers_to_transform", "is not a list of layers");
    layers.push_back(layer.get<std::uint32_t>());
  }
  return layers;
}

}  // namespace

std::uint32_t PeftConfig::rank_of(std::string_view module) const {
  return first_match(rank_pattern, module, rank);
}

float PeftConfig::scale_of(std::string_view module) const {
  const float of_module = first_match(alpha_pattern, module, alpha);
  const auto of_rank = static_cast<float>(rank_of(module));
  return of_module / (divides_by_root ? std::sqrt(of_rank) : of_rank);
}

bool PeftConfig::has_target(std::string_view module) const {
  return target_modules.empty() ||
         std::ranges::any_of(target_modules, [&](const std::string& target) {
           return ends_module(module, target);
         });
}

bool PeftConfig::has_layer(std::uint32_t layer) const {
  return !layers || std::ranges::find(*layers, layer) != layers->end();
}

Result<PeftConfig> read_peft_config(std::string_view json, std::string_view path) {
  const Json object = TRY(parse_file_object(json, path));
  const Fields fields(object, path);
  TRY(check_method(fields));
  PeftConfig config;
  config.rank = TRY(fields.rank("r", fields.get("r")));
  config.alpha = TRY(fields.alpha("lora_alpha", fields.get("lora_alpha")));
  config.divides_by_root = TRY(fields.flag("use_rslora"));
  config.rank_pattern = TRY(fields.patterns<std::uint32_t>(
      "rank_pattern", [&](auto key, const Json& value) { return fields.rank(key, value); }));
  config.alpha_pattern = TRY(fields.patterns<float>(
      "alpha_pattern", [&](auto key, const Json& value) { return fields.alpha(key, value); }));
  config.target_modules = TRY(read_targets(fields));
  config.layers = TRY(read_layers(fields));
  return config;
}

}  // namespace leasehold
