/// Computes the ContentDigest of a model's files.
#pragma once

#include <stop_token>

#include "common/content_digest.hpp"
#include "common/result.hpp"
#include "kernels/model/gguf/gguf.hpp"

namespace leasehold {

/// Reads all bytes of the model's files, in the order of the parts of a split model. For a single
/// file the digest is what `sha256sum FILE` prints. Blocks until the whole file is read: about half
/// a second per GB if the file is in memory. It copies with pread and never touches the mapping.
/// Errors: FileCorrupt if a file became shorter or changed since it was opened; SystemError if one
/// cannot be read; Draining if `stop` was requested. Threads: any.
Result<ContentDigest> content_digest(const GgufFile& file, const std::stop_token& stop = {});

}  // namespace leasehold
