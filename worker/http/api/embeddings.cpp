#include "worker/http/api/embeddings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "common/random.hpp"
#include "common/utf8.hpp"
#include "ipc/control/messages/embedding_text.hpp"
#include "ipc/control/transport/excess.hpp"
#include "worker/http/api/request_fields.hpp"
#include "worker/http/api/sampling_fields.hpp"
#include "worker/http/api/unsupported_fields.hpp"

namespace leasehold::http {
namespace {

/// Fields of other servers that would change the vectors, with the values that do not.
constexpr UnsupportedField kEmbeddingFields[] = {
    {"add_special_tokens", "[true]"},
    {"embd_normalize", "[2]"},
    {"embed_dtype", R"(["float32"])"},
    {"endianness", R"(["native", "little"])"},
    {"messages"},
    {"normalize", "[true]"},
    {"resumable", "[false]"},
    {"stream", "[false]"},
};

class EmbeddingsReader {
 public:
  EmbeddingsReader(const OrderedJson& body, const ApiModel& model, const RequestDefaults& defaults)
      : body_(body), model_(&model), defaults_(&defaults) {}

  Read<EmbeddingsRequest> read() {
    out_.created_unix_s = defaults_->created_unix_s;
    out_.submit.max_emitted_tokens = 0;
    const std::array steps{&EmbeddingsReader::read_model,  &EmbeddingsReader::check_fields,
                           &EmbeddingsReader::read_ids,    &EmbeddingsReader::read_form,
                           &EmbeddingsReader::read_inputs, &EmbeddingsReader::check_size};
    for (const auto step : steps) TRY((this->*step)());
    return std::move(out_);
  }

 private:
  Read<void> read_model() {
    const Field named = body_["model"];
    out_.model = TRY(read_model_name(named, *model_));
    if (!is_adapter(*model_, out_.model)) return {};
    return named.refuse(fmt::format("adapter '{}' makes no embeddings; use model '{}'",
                                    printable_excerpt(out_.model), model_->name));
  }

  Read<void> check_fields() {
    TRY(check_unsupported(body_));
    for (const UnsupportedField& unsupported : kEmbeddingFields) {
      const Field field = body_[unsupported.name];
      const auto neutral = OrderedJson::parse(unsupported.neutral);
      if (!field || std::ranges::find(neutral, field.json()) != neutral.end()) continue;
      return field.refuse(
          fmt::format("{} is not supported for embeddings; leave it out", field.path()));
    }
    return {};
  }

  Read<void> read_ids() {
    out_.submit.request_id = TRY(read_request_id(body_, *defaults_));
    return {};
  }

  /// Reads which vectors are wanted, and how they are written.
  Read<void> read_form() {
    const Field encoding = body_["encoding_format"];
    const std::string format = TRY(text_of(encoding, "float"));
    if (format != "float" && format != "base64")
      return encoding.refuse(fmt::format("encoding_format is {}; send \"float\" or \"base64\"",
                                         shown(encoding.json())));
    out_.as_base64 = format == "base64";
    const Field pooling = body_["pooling"];
    wire::Embedding asked;
    asked.pooling = TRY(text_of(pooling, {}));
    if (!asked.pooling.empty() && asked.pooling != "last" && asked.pooling != "mean")
      return pooling.refuse(fmt::format(
          "pooling is {}; send \"last\" or \"mean\", or leave it out for the model's own",
          shown(pooling.json())));
    asked.dimensions = TRY(count_of(body_["dimensions"], {.least = 1}, 0));
    out_.submit.embedding = asked;
    out_.submit.parse_special = TRY(flag_of(body_["parse_special"], false));
    return {};
  }

  Read<void> read_inputs() {
    const Field input = body_["input"];
    const bool is_list = input.is_array() && !input.json().empty();
    if (!input.is_text() && !is_list)
      return input.refuse("send input: a text, an array of token ids, or an array of these");
    out_.are_several = is_list && !input.json().front().is_number();
    if (!out_.are_several) {
      out_.inputs.push_back(TRY(read_input(input)));
      return {};
    }
    if (input.json().size() > EmbeddingsRequest::kMaxInputs) {
      return input.refuse(
          fmt::format("input has {} elements, and a request has at most {}; send "
                      "several requests",
                      input.json().size(), EmbeddingsRequest::kMaxInputs));
    }
    for (std::size_t i = 0; i < input.json().size(); ++i)
      out_.inputs.push_back(TRY(read_input(input.at(i))));
    return {};
  }

  Read<ApiPrompt> read_input(const Field& input) const {
    if (input.is_text()) {
      ApiPrompt text{.text = input.text()};
      if (text.text->empty())
        return input.refuse(fmt::format("{} is empty; send a text", input.path()));
      return text;
    }
    if (!input.is_array() || input.json().empty())
      return input.refuse(
          fmt::format("{} is neither a text nor an array of token ids; send one", input.path()));
    ApiPrompt read{.tokens = std::vector<std::int32_t>()};
    for (std::size_t i = 0; i < input.json().size(); ++i)
      read.tokens->push_back(TRY(token_id(input.at(i), model_->n_vocab)));
    return read;
  }

  Read<void> check_size() {
    const std::uint32_t dimensions = out_.submit.embedding->dimensions;
    const std::uint32_t width =
        dimensions == 0 ? model_->embedding_width : std::min(dimensions, model_->embedding_width);
    if (out_.inputs.size() * width <= EmbeddingsRequest::kMaxElements) return {};
    return body_["input"].refuse(fmt::format(
        "input has {} elements, and an answer has at most {} vectors of {}; send several requests",
        out_.inputs.size(), EmbeddingsRequest::kMaxElements / width, width));
  }

  BodyFields body_;
  const ApiModel* model_;
  const RequestDefaults* defaults_;
  EmbeddingsRequest out_;
};

}  // namespace

Read<EmbeddingsRequest> parse_embeddings_request(std::string_view text, const ApiModel& model,
                                                 const RequestDefaults& defaults) {
  const auto body = control::parse_request_json(text, "the body");
  if (!body) return std::unexpected(ApiError{body.error()});
  if (!body->is_object())
    return std::unexpected(ApiError{{Errc::BadRequest, "the body is not a JSON object; send one"}});
  return EmbeddingsReader(*body, model, defaults).read();
}

wire::RequestSubmit submission_of(const EmbeddingsRequest& request, std::size_t input) {
  wire::RequestSubmit submit = request.submit;
  if (input > 0) submit.request_id = {mint_request_id()};
  submit.prompt = request.inputs[input].text;
  submit.prompt_tokens = request.inputs[input].tokens;
  return submit;
}

std::string answer_id(const EmbeddingsRequest& request) {
  return "embd-" + request.submit.request_id.value;
}

std::string param_of(const EmbeddingsRequest& request, std::size_t input, const Error& error) {
  if (error.code == Errc::BadRequest) {
    for (const std::string_view field : {"dimensions", "pooling"})
      if (error.detail.starts_with(field)) return std::string(field);
  }
  const bool is_of_input = error.code == Errc::PromptTooLong || error.code == Errc::BadRequest ||
                           error.code == Errc::QuotaBlocks;
  if (!is_of_input) return {};
  return request.are_several ? fmt::format("input/{}", input) : "input";
}

Result<std::string> embeddings_answer(const EmbeddingsRequest& request,
                                      std::span<const std::string> vectors, UsageCount usage) {
  using Json = nlohmann::json;
  Json data = Json::array();
  for (const std::string& vector : vectors) {
    Json entry{{"object", "embedding"}, {"index", data.size()}};
    const auto embedding = TRY(wire::embedding_of(vector));
    entry["embedding"] = request.as_base64 ? Json(vector) : Json(embedding);
    data.push_back(std::move(entry));
  }
  return line_of(
      {{"id", answer_id(request)},
       {"object", "list"},
       {"created", request.created_unix_s},
       {"model", request.model},
       {"data", std::move(data)},
       {"usage", {{"prompt_tokens", usage.prompt_tokens}, {"total_tokens", usage.prompt_tokens}}}});
}

}  // namespace leasehold::http
