/// Reads a journal. The file is untrusted input, so every value is checked.
#pragma once

#include "broker/books/rows.hpp"
#include "broker/journal/database.hpp"

namespace leasehold::journal {

/// Errors: FileCorrupt naming the row whose value is out of range; those of Database.
Result<Image> load_image(Database& database);

}  // namespace leasehold::journal
