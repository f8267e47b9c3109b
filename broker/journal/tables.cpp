#include "broker/journal/tables.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "broker/journal/row_columns.hpp"
#include "ipc/control/messages/json_fields.hpp"
#include "ipc/control/tokens/api_key.hpp"
#include "ipc/segment/gate_set.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold::journal {
namespace {

constexpr std::int64_t kApplicationId = 0x4c53'484a;  // "LSHJ"

/// Records are not read back as rows, so their tables have no description. `usage_source` has the
/// newest number of each worker's usage records; `meta` and `audit_tenant` belong to the audit log.
constexpr std::string_view kRecordTables = R"sql(
CREATE TABLE operator_action (
  operator_action INTEGER PRIMARY KEY,
  at_unix_s INTEGER NOT NULL DEFAULT (CAST(strftime('%s', 'now') AS INTEGER)),
  at_boottime_ns INTEGER NOT NULL, uid INTEGER NOT NULL, action TEXT NOT NULL,
  object TEXT NOT NULL, reason TEXT NOT NULL, done INTEGER NOT NULL);
CREATE TABLE audit_record (
  sequence INTEGER PRIMARY KEY, at_unix_ms INTEGER NOT NULL, content TEXT NOT NULL,
  hash TEXT NOT NULL);
CREATE TABLE audit_tenant (
  tenant TEXT PRIMARY KEY, records INTEGER NOT NULL, hash TEXT NOT NULL,
  unix_ms INTEGER NOT NULL, granted INTEGER NOT NULL, open INTEGER NOT NULL,
  quarantined INTEGER NOT NULL, held INTEGER NOT NULL, erased INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE usage_source (attachment INTEGER PRIMARY KEY, number INTEGER NOT NULL);
CREATE TABLE meta (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
)sql";

}  // namespace

namespace detail {  // not unnamed: Tables::Statements has members of these types

/// Collects the columns of a table as SQL.
struct ColumnSql {
  std::vector<std::string> names, definitions, conditions;

  template <class Value>
  void key(const char* name, const Value&) {
    const bool is_first = names.empty();
    definitions.push_back(
        fmt::format("{} {} NOT NULL{}", name, kType<Value>, is_first ? " PRIMARY KEY" : ""));
    conditions.push_back(fmt::format("{}=?", name));
    names.emplace_back(name);
  }
  /// A missing number is stored as 0.
  template <class Number>
  void column(const char* name, const std::optional<Number>&) {
    column(name, Number{});
  }
  template <class Value, class... Last>
  void column(const char* name, const Value&, Last...) {
    definitions.push_back(fmt::format("{} {} NOT NULL DEFAULT {}", name, kType<Value>,
                                      kIsNumber<Value> ? "0" : "''"));
    names.emplace_back(name);
  }

 private:
  template <class Value>
  static constexpr bool kIsNumber =
      std::is_arithmetic_v<Value> || std::is_enum_v<Value> || requires(Value id) { +id.value; };
  template <class Value>
  static constexpr const char* kType = kIsNumber<Value> ? "INTEGER" : "TEXT";
};

/// Binds the values of all columns, or of the keys only.
class ColumnBinder {
 public:
  ColumnBinder(Statement& statement, bool keys_only)
      : statement_(statement), keys_only_(keys_only) {}
  void key(const char*, const auto& value) { statement_.bind(value); }
  template <class Value, class... Last>
  void column(const char*, const Value& value, Last...) {
    if (!keys_only_) statement_.bind(value);
  }
  template <class Number>
  void column(const char* name, const std::optional<Number>& value) {
    column(name, value.value_or(0));
  }
  void column(const char*, const wire::TenantPolicy& policy) {
    policy_ = policy.to_json().dump();
    if (!keys_only_) statement_.bind(policy_);
  }

 private:
  Statement& statement_;
  bool keys_only_;
  std::string policy_;  ///< SQLite reads it while the statement runs.
};

/// Reads the columns of the current row.
class ColumnReader {
 public:
  explicit ColumnReader(Statement& row) : row_(row) {}
  void key(const char*, auto& value) { row_.read(value); }
  void column(const char*, auto& value) { row_.read(value); }
  template <class Enum>
  void column(const char*, Enum& value, Enum last) {
    std::int64_t number = 0;
    row_.read(number);
    value = static_cast<Enum>(number);
    is_valid_ = is_valid_ && number >= 0 && number <= static_cast<std::int64_t>(last);
  }
  template <class Number>
  void column(const char*, std::optional<Number>& value) {
    std::int64_t number = 0;
    row_.read(number);
    is_valid_ = is_valid_ && number >= 0 && std::in_range<Number>(number);
    if (number > 0) value = static_cast<Number>(number);
  }
  /// The policy must name the same tenant as the key.
  void column(const char*, wire::TenantPolicy& policy) {
    std::string text;
    row_.read(text);
    auto read = wire::TenantPolicy::from_json(wire::Json::parse(text, nullptr, false));
    is_valid_ = is_valid_ && read && read->tenant == policy.tenant;
    if (is_valid_) policy = *std::move(read);
  }
  bool is_valid() const { return is_valid_; }

 private:
  Statement& row_;
  bool is_valid_ = true;
};

// Each overload checks what a row requires in addition to valid enumerators. `image` has the rows
// loaded before it.

bool fits(const auto&, const Image&) {
  return true;
}

bool fits(const ApiKeyRow& row, const Image& image) {
  const wire::RateLimits& rates = row.limits.rates;
  return image.tenants.contains(row.tenant) && row.id == api_key_id(row.hash) &&
         row.limits.max_concurrent.value_or(1) <= kMaxStepSequences &&
         rates.tokens_per_minute.value_or(1) <= wire::kMostPerMinute &&
         rates.requests_per_minute.value_or(1) <= wire::kMostPerMinute &&
         rates.tokens_per_day.value_or(1) <= wire::kMostPerDay && row.expires_unix_ms >= 0 &&
         row.expires_unix_ms <= wire::kLastExpiry_ms;
}

bool fits(const AdapterRow& row, const Image& image) {
  const bool has_owner =
      row.removed || row.tenant.value.empty() || image.tenants.contains(row.tenant);
  return row.version != 0 && has_owner && check_text(TextRule::RelativePath, row.file).empty() &&
         (row.digest.empty() || check_text(TextRule::HexKey, row.digest).empty());
}

bool fits(const WorkerRow& row, const Image&) {
  return row.index.value < kMaxWorkers;
}

bool has_adapter(const LeaseRow& row) {
  return row.scope == wire::LeaseScope::Adapter ||
         (row.scope == wire::LeaseScope::Shared && !row.model.empty());
}

bool fits(const LeaseRow& row, const Image& image) {
  const bool is_live = row.state == LeaseState::Live;
  return row.drain_reason != RevokeReason::None && row.state != LeaseState::Closed &&
         is_live == (row.reason == RevokeReason::None) && row.id.generation != 0 &&
         image.workers.contains(row.worker) && has_adapter(row) == (row.adapter_version != 0) &&
         (row.region == RegionId{} || image.regions.contains(row.region));
}

bool fits(const ExtentRow& row, const Image& image) {
  const bool needs_lease = row.state != ExtentState::Quarantined && row.state != ExtentState::Held;
  return row.state != ExtentState::Free && row.size_bytes != 0 &&
         row.size_bytes == image.extent_size_bytes &&
         (!needs_lease || image.leases.contains(row.lease));
}

std::unexpected<Error> corrupt(const auto& row) {
  std::string key;
  if constexpr (requires { id_of(row).value; }) key = fmt::format(" {}", id_of(row).value);
  if constexpr (requires { id_of(row).slot; }) key = fmt::format(" in slot {}", id_of(row).slot);
  return fail(Errc::FileCorrupt,
              fmt::format("the journal's {}{} has a value out of range", row.kTable, key));
}

/// The statements about one table.
template <class Row>
class Table {
 public:
  static std::string create_sql() {
    return fmt::format("CREATE TABLE {} ({});", Row::kTable, fmt::join(sql().definitions, ", "));
  }

  Result<void> prepare(Database& database) {
    ColumnSql columns = sql();
    std::vector<std::string> values(columns.names.size(), "?");
    if (columns.conditions.empty()) {
      columns.names.emplace_back("rowid");
      values.emplace_back("1");
    } else {
      erase_ = TRY(database.prepare(fmt::format("DELETE FROM {} WHERE {}", Row::kTable,
                                                fmt::join(columns.conditions, " AND "))));
    }
    put_ =
        TRY(database.prepare(fmt::format("REPLACE INTO {} ({}) VALUES ({})", Row::kTable,
                                         fmt::join(columns.names, ", "), fmt::join(values, ", "))));
    return {};
  }

  Result<void> put(const Row& row) { return run(put_, row, false); }
  Result<void> erase(const Row& row) { return run(erase_, row, true); }

  static Result<void> load(Database& database, Image& image) {
    Statement rows = TRY(database.prepare(
        fmt::format("SELECT {} FROM {}", fmt::join(sql().names, ", "), Row::kTable)));
    while (TRY(rows.next())) {
      Row row;
      ColumnReader columns(rows);
      describe(row, columns);
      if (!columns.is_valid() || !fits(row, image)) return corrupt(row);
      apply(image, std::move(row));
    }
    return {};
  }

 private:
  static ColumnSql sql() {
    ColumnSql columns;
    const Row row;
    describe(row, columns);
    return columns;
  }
  static Result<void> run(Statement& statement, const Row& row, bool keys_only) {
    ColumnBinder columns(statement, keys_only);
    describe(row, columns);
    return statement.run();
  }

  Statement put_;
  Statement erase_;
};

/// The tables in the order of loading: a row refers only to rows of earlier tables.
using AllTables = std::tuple<Table<HighWaterMarks>, Table<ExtentSizeRow>, Table<BootRow>,
                             Table<TenantRow>, Table<ApiKeyRow>, Table<AdapterRow>,
                             Table<WorkerRow>, Table<RegionRow>, Table<LeaseRow>, Table<ExtentRow>>;

}  // namespace detail

using detail::AllTables;
using detail::Table;

namespace {

/// Calls `act` with each table until it fails.
Result<void> for_each_table(AllTables& tables, auto act) {
  Result<void> result;
  const auto next = [&](auto& table) {
    if (result) result = act(table);
  };
  std::apply([&](auto&... table) { (next(table), ...); }, tables);
  return result;
}

/// True for a file without tables. Errors: those of prepare_schema.
Result<bool> is_new(Database& database) {
  const std::int64_t version = TRY(database.number("PRAGMA user_version"));
  const std::int64_t application = TRY(database.number("PRAGMA application_id"));
  const std::int64_t tables = TRY(database.number("SELECT count(*) FROM sqlite_schema"));
  if (application == 0 && version == 0 && tables == 0) return true;
  if (application != kApplicationId) {
    return fail(Errc::FileCorrupt, "the file is not a journal; choose another --state-dir");
  }
  if (version == kSchemaVersion) return false;
  return fail(Errc::FileCorrupt,
              fmt::format("the journal has schema {}, this broker uses {}; start the broker that "
                          "wrote it",
                          version, kSchemaVersion));
}

}  // namespace

Result<void> prepare_schema(Database& database) {
  if (!TRY(is_new(database))) return {};
  std::string sql = fmt::format("BEGIN IMMEDIATE; {}", kRecordTables);
  std::apply([&](const auto&... table) { ((sql += table.create_sql()), ...); }, AllTables());
  sql += fmt::format("PRAGMA application_id={}; PRAGMA user_version={}; COMMIT;", kApplicationId,
                     kSchemaVersion);
  return database.execute(sql);
}

Result<Image> load_image(Database& database) {
  Image image;
  AllTables tables;
  TRY(for_each_table(tables, [&](auto& table) { return table.load(database, image); }));
  return image;
}

struct Tables::Statements {
  AllTables tables;
  Statement add_operator_action;
  AuditLog& audit;

  template <class Row>
  Result<void> write(const Row& row) {
    return std::get<Table<Row>>(tables).put(row);
  }
  template <class ObjectRow>
  Result<void> write(const Gone<ObjectRow>& gone) {
    if constexpr (std::same_as<ObjectRow, WorkerRow>) TRY(audit.forget(gone.id));
    ObjectRow row;
    id_of(row) = gone.id;
    return std::get<Table<ObjectRow>>(tables).erase(row);
  }
  Result<void> write(const UsageRow& row) { return audit.append(row); }
  Result<void> write(const RevocationRow& row) { return audit.append(row); }
  Result<void> write(const LeaseGrantedRow& row) { return audit.append(row); }
  Result<void> write(const LeaseErasedRow& row) { return audit.append(row); }
  Result<void> write(const AuditKeyRow& row) { return audit.append(row); }
  Result<void> write(const OperatorActionRow& row) {
    return add_operator_action.run(row.at_boottime_ns, row.uid, row.action, row.object, row.reason,
                                   row.done);
  }
};

Tables::Tables(std::unique_ptr<Statements> statements) : statements_(std::move(statements)) {}
Tables::~Tables() = default;
Tables::Tables(Tables&&) noexcept = default;

Result<Tables> Tables::open(Database& database, AuditLog& audit) {
  Statement add_operator_action = TRY(
      database.prepare("INSERT INTO operator_action (at_boottime_ns, uid, action, object, reason,"
                       " done) VALUES (?,?,?,?,?,?)"));
  auto statements =
      std::make_unique<Statements>(AllTables(), std::move(add_operator_action), audit);
  TRY(for_each_table(statements->tables, [&](auto& table) { return table.prepare(database); }));
  return Tables(std::move(statements));
}

Result<void> Tables::write(const Row& row) {
  return std::visit([this](const auto& each) { return statements_->write(each); }, row);
}

}  // namespace leasehold::journal
