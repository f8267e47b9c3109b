/// A copy of the newest audit record's sequence and hash, outside the journal. It shows if records
/// were cut off the end of the chain.
///
/// Format: one line, "<sequence> <hash>". Threads: one.
#pragma once

#include <optional>
#include <string>

#include "common/result.hpp"
#include "ipc/control/tokens/audit_chain.hpp"

namespace leasehold::journal {

/// Returns what the file says, or nothing if there is no file. Errors: FileCorrupt; those of
/// state_file_error.
Result<std::optional<audit::Link>> read_audit_head(const std::string& path);

/// The file is durable when this returns. Errors: those of write_state_file; the file is then
/// unchanged.
Result<void> write_audit_head(const std::string& path, const audit::Link& head);

}  // namespace leasehold::journal
