/// Compiles a schema with a budget of its own.
#pragma once

#include "worker/text/grammar/schema/json_schema.hpp"

namespace leasehold::testing {

/// What a schema's grammar does not check.
using Listed = std::vector<std::string>;

inline Result<Grammar> compiled(std::string_view schema, SchemaMode mode = SchemaMode::Strict) {
  WorkBudget work;
  return compile_json_schema(schema, mode, work);
}

}  // namespace leasehold::testing
