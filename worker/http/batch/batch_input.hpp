/// Reads the files of a batch before and while its lines run. Any thread; waits for the disk.
#pragma once

#include <string>
#include <unordered_set>
#include <variant>

#include "worker/batch/batch_lines.hpp"
#include "worker/batch/batch_store.hpp"
#include "worker/http/api/api_request.hpp"
#include "worker/http/api/embeddings.hpp"

namespace leasehold::http {

/// What a batch needs before its first line runs.
struct PreparedBatch {
  batch::CheckedLines checked;
  std::unordered_set<std::string> answered;
  batch::LineCounts counts;
  UniqueFd input;
  UniqueFd output;
  UniqueFd errors;

  /// Checks the whole input file, and reads the results that an earlier worker wrote. If lines are
  /// bad, only `checked` and `counts` are set. Errors: those of the store.
  static Result<PreparedBatch> from(const batch::BatchStore& store,
                                    const batch::BatchRecord& record, const ApiModel& model);
};

using LineRequest = std::variant<ApiRequest, EmbeddingsRequest>;

/// Reads and parses one line of the input file. `defaults` are the same whenever the line runs, so
/// that it has the same seed and time. Errors: those of parse_api_request and
/// parse_embeddings_request; BadRequest for a stream.
Read<LineRequest> read_request(int input, const batch::LineSpan& span, std::string_view endpoint,
                               const RequestDefaults& defaults, const ApiModel& model);

}  // namespace leasehold::http
