/// Python's operators. Errors: BadRequest where Python raises a TypeError, for a division by zero,
/// and for integers beyond 64 bits.
#pragma once

#include <string_view>

#include "worker/text/chat/jinja/runtime.hpp"

namespace leasehold::jinja {

/// + - * / // % **
Result<Value> arithmetic(Runtime& runtime, std::string_view operation, const Value& left,
                         const Value& right);
/// Unary `-` and `+`.
Result<Value> apply_sign(Runtime& runtime, std::string_view sign, const Value& operand);

/// == != < <= > >= in, not in
Result<bool> compare(Runtime& runtime, std::string_view operation, const Value& left,
                     const Value& right);

Result<bool> are_equal(Runtime& runtime, const Value& left, const Value& right);
/// `left < right`.
Result<bool> is_less(Runtime& runtime, const Value& left, const Value& right);
/// Null if no key equals `key`. A text key takes constant time.
Result<const Value*> find_entry(Runtime& runtime, const Dict& dict, const Value& key);
Result<bool> contains(Runtime& runtime, const Value& container, const Value& wanted);

struct SliceBounds {
  Value start, stop, step;  ///< None if omitted.
};
Result<Value> slice(Runtime& runtime, const Value& value, const SliceBounds& bounds);

}  // namespace leasehold::jinja
