// No database: what the loader itself costs. Writes are counted and dropped; a read finds its
// record and leaves `out` as it is; a scan visits nothing.
#include <atomic>

#include "databases/shared/options.h"
#include "loader/database.h"

namespace opjoule {
namespace {

class NullSession : public Session {
 public:
  explicit NullSession(std::atomic<int64_t>& records) : records_(records) {}
  ~NullSession() override { records_ += written_; }

  Status read(std::string_view, FieldChoice, Record&) override { return Status::ok(); }
  Status insert(std::string_view, const Record&) override {
    ++written_;
    return Status::ok();
  }
  Status update(std::string_view, const Record&, bool) override { return Status::ok(); }
  Status scan(std::string_view, uint64_t, FieldChoice, const Visitor&) override {
    return Status::ok();
  }
  Status remove(std::string_view) override {
    --written_;
    return Status::ok();
  }
  Status flush() override {
    records_ += written_;
    written_ = 0;
    return Status::ok();
  }

 private:
  std::atomic<int64_t>& records_;  // shared, so touched only at flush
  int64_t written_ = 0;
};

class NullDatabase : public Database {
 public:
  std::unique_ptr<Session> session(Status&) override {
    return std::make_unique<NullSession>(records_);
  }
  Status settle(double, bool* settled) override {
    *settled = true;
    return Status::ok();
  }
  Status count(uint64_t* records) override {
    *records = static_cast<uint64_t>(records_.load());
    return Status::ok();
  }
  [[nodiscard]] uint64_t size_on_disk() const override { return 0; }
  [[nodiscard]] std::map<std::string, std::string> settings() const override {
    return {{"updates", "none"}};
  }
  Status close() override { return Status::ok(); }

 private:
  std::atomic<int64_t> records_{0};
};

std::unique_ptr<Database> open_null(const OpenRequest& request, Status& status) {
  status = Options("null", *request.properties, {}).status();
  if (!status.is_ok()) return nullptr;
  return std::make_unique<NullDatabase>();
}

}  // namespace

const Engine& null_engine() {
  static const Engine engine{"null", "1", {durability_rule()}, open_null};
  return engine;
}

}  // namespace opjoule
