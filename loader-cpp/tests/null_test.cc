#include "tests/engine_fixture.h"

namespace opjoule {
namespace {

TEST_CASE("null: takes everything, finds everything, counts what was inserted") {
  Place place;
  Opened opened = place.open(*find_engine("null"), How::kCreate);
  auto session = opened.session();
  Record found;
  for (size_t i = 0; i < 5; ++i) CHECK_OK(session->insert(key_of(i), record_of(i)));
  CHECK_OK(session->remove(key_of(1)));
  CHECK_OK(session->read(key_of(99), {}, found));
  CHECK_OK(session->update(key_of(99), record_of(99), true));
  CHECK_OK(session->flush());
  CHECK(opened.count() == 4);
  CHECK(opened.database->size_on_disk() == 0);
}

}  // namespace
}  // namespace opjoule
