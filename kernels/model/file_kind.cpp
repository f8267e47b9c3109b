#include "kernels/model/file_kind.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "common/utf8.hpp"

namespace leasehold {
namespace {

/// A kind of file that is not a model, and advice for the user.
struct OtherKind {
  std::string_view type;  ///< Value of general.type, or of general.architecture in older files.
  std::string_view what;
  std::string_view advice;
};

constexpr OtherKind kOtherKinds[] = {
    {"adapter", "an adapter (LoRA)",
     "give its base model; --adapters and `brokerctl adapters add` load adapters"},
    {"controlvector", "a control vector", "give the model that it was made for"},
    {"mmproj", "a multimodal projector", "give the language model that it belongs to"},
    {"clip", "a multimodal projector (clip)", "give the language model that it belongs to"},
    {"imatrix", "an importance matrix for quantization",
     "quantize a model with it and give the result"},
    {"vocab", "a vocabulary without weights", "give the whole model"},
};

/// Returns a text value; metadata of any other type counts as empty.
std::string text_of(const GgufFile& file, std::string_view key) {
  return file.get_or<std::string>(key, "").value_or("");
}

const OtherKind* kind_named(std::string_view type) {
  const auto* found = std::ranges::find(kOtherKinds, type, &OtherKind::type);
  return found == std::end(kOtherKinds) ? nullptr : found;
}

bool is_adapter_tensor(const GgufTensor& tensor) {
  return tensor.name.ends_with(".lora_a") || tensor.name.ends_with(".lora_b");
}

/// Determines the kind of a file without such metadata from its content.
const OtherKind* kind_of_content(const GgufFile& file) {
  if (file.has("adapter.type") || std::ranges::any_of(file.tensors(), is_adapter_tensor))
    return kind_named("adapter");
  if (file.has("imatrix.chunk_count")) return kind_named("imatrix");
  const bool has_vocabulary = file.has("tokenizer.ggml.tokens");
  return file.tensors().empty() && has_vocabulary ? kind_named("vocab") : nullptr;
}

}  // namespace

Result<void> check_is_model(const GgufFile& file) {
  const std::string type = text_of(file, "general.type");
  const OtherKind* kind = kind_named(type);
  if (kind == nullptr) kind = kind_named(text_of(file, "general.architecture"));
  if (kind == nullptr) kind = kind_of_content(file);
  if (kind != nullptr) {
    return fail(Errc::UnsupportedModel,
                fmt::format("{} is {}, not a model; {}", file.path(), kind->what, kind->advice));
  }
  if (type.empty() || type == "model") return {};
  return fail(Errc::UnsupportedModel, fmt::format("{} is of the type \"{}\", not a model; give a "
                                                  "model's file",
                                                  file.path(), printable_excerpt(type)));
}

}  // namespace leasehold
