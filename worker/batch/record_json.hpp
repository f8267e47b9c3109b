/// The JSON of files and batches: the form on disk, and the form of OpenAI's API. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include "common/result.hpp"
#include "worker/batch/batch_record.hpp"

namespace leasehold::batch {

using Json = nlohmann::ordered_json;

// The form of the files on the disk. Reading fails with FileCorrupt, which names the field.

Json to_disk(const FileRecord& file);
Json to_disk(const BatchRecord& batch);
Result<FileRecord> file_from_disk(const Json& json);
Result<BatchRecord> batch_from_disk(const Json& json);

// The objects that clients receive over HTTP.

Json to_api(const FileRecord& file);
/// `has_output`, `has_errors`: the file of results, and that of refused lines, exist.
Json to_api(const BatchRecord& batch, bool has_output, bool has_errors);

}  // namespace leasehold::batch
