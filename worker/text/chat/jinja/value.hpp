/// The values of templates: the part of Python's types that templates use.
///
/// Cheap to copy: text, lists and dicts are shared and immutable. A namespace is mutable and may
/// contain itself; Runtime empties all namespaces when it ends. Runtime limits the depth of values
/// to Limits::value_depth, so that recursion over a value cannot overflow the stack.
///
/// Threads: values without namespaces, loops and callables may be shared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "common/result.hpp"
#include "worker/text/marked_text.hpp"

namespace leasehold::jinja {

/// A missing name, attribute or element. It prints as nothing, is false and has no elements;
/// computing with it is an error.
struct Undefined {
  std::shared_ptr<const std::string> what;  ///< "'x' is undefined"; may be null.
};
struct None {};

struct List;
class Dict;
struct Namespace;
struct Loop;
struct Callable;

using Text = std::shared_ptr<const MarkedText>;
using ListRef = std::shared_ptr<const List>;
using DictRef = std::shared_ptr<const Dict>;
using NamespaceRef = std::shared_ptr<Namespace>;
using LoopRef = std::shared_ptr<Loop>;
using CallableRef = std::shared_ptr<const Callable>;

class Value {
 public:
  using Content = std::variant<Undefined, None, bool, std::int64_t, double, Text, ListRef, DictRef,
                               NamespaceRef, LoopRef, CallableRef>;

  Value() = default;  ///< Undefined.
  template <class T>
    requires std::constructible_from<Content, T>
  explicit Value(T content) : content_(std::move(content)) {}

  /// A text of the client unless the caller says otherwise, so that an operation that does not
  /// care about origins cannot make control tokens.
  static Value text(std::string text, TextOrigin origin = TextOrigin::Client) {
    return Value::text(MarkedText(std::move(text), origin));
  }
  static Value text(MarkedText text) {
    return Value(std::make_shared<const MarkedText>(std::move(text)));
  }
  static Value undefined(std::string what) {
    return Value(Undefined{std::make_shared<const std::string>(std::move(what))});
  }

  template <class T>
  bool is() const {
    return std::holds_alternative<T>(content_);
  }
  template <class T>
  const T* get() const {
    return std::get_if<T>(&content_);
  }

  bool is_undefined() const { return is<Undefined>(); }
  bool is_none() const { return is<None>(); }
  bool is_text() const { return is<Text>(); }
  /// A bool counts as a number, as in Python.
  bool is_integer() const { return is<bool>() || is<std::int64_t>(); }
  bool is_number() const { return is_integer() || is<double>(); }

  /// Null for other types.
  const MarkedText* as_marked_text() const { return is<Text>() ? get<Text>()->get() : nullptr; }
  const std::string* as_text() const {
    const MarkedText* text = as_marked_text();
    return text != nullptr ? &text->bytes() : nullptr;
  }
  const List* as_list() const { return is<ListRef>() ? get<ListRef>()->get() : nullptr; }
  const Dict* as_dict() const { return is<DictRef>() ? get<DictRef>()->get() : nullptr; }

  /// Only for `is_integer()` or `is_number()`.
  std::int64_t integer() const { return is<bool>() ? *get<bool>() : *get<std::int64_t>(); }
  double number() const { return is<double>() ? *get<double>() : static_cast<double>(integer()); }

  /// Python's bool(): false for empty, zero, None and undefined values.
  bool is_truthy() const;

  /// The nesting depth of containers; 0 for a plain value.
  std::uint32_t depth() const;

  /// Python's name of the type: "str", "dict".
  std::string_view type_name() const;

 private:
  Content content_;
};

struct List {
  std::vector<Value> items;
  bool is_tuple = false;
  std::uint32_t depth = 1;
};

/// Entries are in insertion order. A text key is found in constant time.
class Dict {
 public:
  using Entry = std::pair<Value, Value>;

  /// If keys are equal, the first one is found.
  explicit Dict(std::vector<Entry> entries);

  const std::vector<Entry>& entries() const { return entries_; }
  /// One more than the depth of the deepest key or value.
  std::uint32_t depth() const { return depth_; }
  /// Null if no text key equals `key`.
  const Value* find(std::string_view key) const;

 private:
  std::vector<Entry> entries_;
  std::uint32_t depth_ = 1;
  /// By text key; empty in a small dict. The keys are views into entries_.
  std::unordered_map<std::string_view, std::size_t> index_;
};

struct Namespace {
  std::unordered_map<std::string, Value> attributes;
};

/// The variable `loop` inside a `for`.
struct Loop {
  ListRef items;
  std::size_t index0 = 0;
};

struct Arguments {
  std::vector<Value> positional;
  std::vector<std::pair<std::string, Value>> named;
};

/// Macros, methods of values, global functions.
struct Callable {
  std::function<Result<Value>(const Arguments&)> call;
  std::uint32_t depth = 1;  ///< One more than the depth of the values that `call` holds.
};

}  // namespace leasehold::jinja
