/// The form of long lists in messages: an array for each key instead of an object for each item.
///
///   {"id": ["a/1", "a/2"], "state": ["decode", "parsing"], "lease": ["3.7", null]}
///
/// Most of the time that a list of objects takes, in each process on its way, is spent on keys.
///
/// All arrays have the length of the list. A null is a missing field, and so is a missing array.
/// Errors are those of json_fields.hpp, with paths like "items[3].lease". Internal to ipc/control.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "ipc/control/messages/json_fields.hpp"

namespace leasehold {

/// Appends the fields of one object after the other to their columns. A description names the same
/// keys in the same order for each object.
class ColumnWriter {
 public:
  explicit ColumnWriter(std::size_t rows) : rows_(rows) {}

  void begin_row() { next_ = 0; }
  template <class T, class... Rule>
  void field(const char* key, const T& value, Rule...) {
    add(key, to_field(value));
  }
  template <class T, class... Rule>
  void field(const char* key, const std::optional<T>& value, Rule...) {
    add(key, value ? to_field(*value) : nlohmann::json(nullptr));
  }
  template <class T, class... Rule>
  void with_default(const char* key, const T& value, const T& default_value, Rule...) {
    add(key, value == default_value ? nlohmann::json(nullptr) : to_field(value));
  }
  template <class T, class... Rule>
  void may_be_missing(const char* key, const T& value, Rule... rule) {
    field(key, value, rule...);
  }
  nlohmann::json take() && {
    nlohmann::json json = nlohmann::json::object();
    for (Column& column : columns_)
      if (column.has_value) json[column.key] = std::move(column.values);
    return json;
  }

 private:
  struct Column {
    const char* key;
    nlohmann::json::array_t values{};
    bool has_value = false;
  };
  void add(const char* key, nlohmann::json value) {
    if (next_ == columns_.size()) columns_.push_back({.key = key});
    Column& column = columns_[next_++];
    if (column.values.empty()) column.values.reserve(rows_);
    column.has_value = column.has_value || !value.is_null();
    column.values.push_back(std::move(value));
  }

  std::size_t rows_;
  std::vector<Column> columns_;
  std::size_t next_ = 0;
};

/// The fields of one row after the other. Each key is looked up once.
class ColumnFields {
 public:
  /// `json` is an object of arrays of equal length.
  explicit ColumnFields(const nlohmann::json& json) : json_(&json) {}

  void begin_row(std::size_t row) {
    row_ = row;
    next_ = 0;
  }
  const nlohmann::json* find(const char* key) {
    if (next_ == columns_.size()) {
      const auto found = json_->find(key);
      columns_.push_back(found == json_->end() ? nullptr : &*found);
    }
    const nlohmann::json* column = columns_[next_++];
    const nlohmann::json* value = column == nullptr ? nullptr : &(*column)[row_];
    return value == nullptr || value->is_null() ? nullptr : value;
  }

 private:
  const nlohmann::json* json_;
  std::vector<const nlohmann::json*> columns_;  // in the order of the description
  std::size_t row_ = 0;
  std::size_t next_ = 0;
};

template <class T>
void FieldWriter::columns(const char* key, const std::vector<T>& values) {
  ColumnWriter columns(values.size());
  for (const T& value : values) {
    columns.begin_row();
    describe(value, columns);
  }
  json_[key] = std::move(columns).take();
}

template <class T>
Problem read_columns(const nlohmann::json& json, std::vector<T>& values) {
  std::size_t rows = 0;
  if (Problem problem = count_rows(json, rows)) return problem;
  values.clear();
  values.reserve(rows);
  ColumnFields fields(json);
  while (values.size() < rows) {
    T value{};
    fields.begin_row(values.size());
    FieldReaderFrom<ColumnFields&> reader(fields);
    describe(value, reader);
    if (Problem problem = std::move(reader).take_problem()) {
      problem->where = joined_path("[" + std::to_string(values.size()) + "]", problem->where);
      return problem;
    }
    values.push_back(std::move(value));
  }
  return {};
}

template <class T>
void FieldReader::columns(const char* key, std::vector<T>& values) {
  if (problem_) return;
  const nlohmann::json* found = source_.find(key);
  note(key, found, read_columns(found ? *found : kMissingField, values));
}

}  // namespace leasehold
