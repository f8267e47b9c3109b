/// Reads the body of `/v1/embeddings` and writes the answer, in OpenAI's form. Pure.
///
/// Source: https://platform.openai.com/docs/api-reference/embeddings.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "worker/http/api/api_answer.hpp"
#include "worker/http/api/api_request.hpp"

namespace leasehold::http {

/// A parsed request. Its answer has a vector for each input, in the order of the inputs.
struct EmbeddingsRequest {
  static constexpr std::size_t kMaxInputs = 2048;
  /// The most elements that the vectors of one answer have together. As JSON they take about 40
  /// MiB.
  static constexpr std::size_t kMaxElements = std::size_t{1} << 21;

  std::string model;  ///< The name by which the request reached the model.
  /// The submission that all inputs share, with the id of the first one and without a prompt.
  wire::RequestSubmit submit;
  std::int64_t created_unix_s = 0;
  std::vector<ApiPrompt> inputs;
  bool are_several = false;  ///< `input` is an array of inputs, so errors name the input.
  bool as_base64 = false;
};

/// Parses a body. Beside OpenAI's fields it reads `pooling` ("last" or "mean"), `parse_special`,
/// `request_id` and `rid`. Errors: BadRequest; UnknownRequest if the body names another model.
Read<EmbeddingsRequest> parse_embeddings_request(std::string_view body, const ApiModel& model,
                                                 const RequestDefaults& defaults = {});

/// The submission of the input with this index. The first one has the id of the request, and each
/// other one gets a new id.
wire::RequestSubmit submission_of(const EmbeddingsRequest& request, std::size_t input);

/// The id of the answer, such as "embd-req-1".
std::string answer_id(const EmbeddingsRequest& request);

/// The field that a worker's refusal of this input concerns: "input" or "input/3"; empty for a
/// refusal that the input did not cause.
std::string param_of(const EmbeddingsRequest& request, std::size_t input, const Error& error);

/// The body of the answer. `vectors`: as in wire::RequestCompleted::embedding, one for each input.
/// Errors: MalformedMessage for another text.
Result<std::string> embeddings_answer(const EmbeddingsRequest& request,
                                      std::span<const std::string> vectors, UsageCount usage);

}  // namespace leasehold::http
