// No database: shows what the loader itself costs. Writes are counted and dropped; a read finds its
// row and leaves `out` as it is; a scan visits nothing.
#include <atomic>

#include "databases/shared/options.h"
#include "loader/database.h"

namespace opjoule {
namespace {

class NullClient : public Client {
 public:
  explicit NullClient(std::atomic<int64_t>& rows) : rows_(rows) {}
  ~NullClient() override { rows_ += written_; }

  Status read(std::string_view, FieldChoice, Row&) override { return Status::ok(); }
  Status insert(std::string_view, const Row&) override {
    ++written_;
    return Status::ok();
  }
  Status update(std::string_view, const Row&, bool) override { return Status::ok(); }
  Status scan(std::string_view, uint64_t, FieldChoice, const Visitor&) override {
    return Status::ok();
  }
  Status remove(std::string_view, bool) override {
    --written_;
    return Status::ok();
  }
  Status flush() override {
    rows_ += written_;
    written_ = 0;
    return Status::ok();
  }

 private:
  std::atomic<int64_t>& rows_;  // shared by the clients, so changed only at flush
  int64_t written_ = 0;
};

class NullDatabase : public Database {
 public:
  std::unique_ptr<Client> client(Status&) override { return std::make_unique<NullClient>(rows_); }
  Status settle(double, bool* settled) override {
    *settled = true;
    return Status::ok();
  }
  Status count(uint64_t* rows) override {
    *rows = static_cast<uint64_t>(rows_.load());
    return Status::ok();
  }
  [[nodiscard]] uint64_t size_on_disk() const override { return 0; }
  [[nodiscard]] std::map<std::string, std::string> settings() const override {
    return {{"updates", "none"}};
  }
  Status close() override { return Status::ok(); }

 private:
  std::atomic<int64_t> rows_{0};
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
