#include "sensor_bench.h"

#include <iomanip>
#include <nlohmann/json.hpp>

#include "errors.h"
#include "sensors/models.h"

namespace opjoule::rig {
SensorBench::SensorBench(Mcu& mcu, Twi& twi, const Profile& board, const Options& options)
    : board_(board) {
  std::vector<PowerSensor*> alerting;
  for (const auto& choice : options.sensors) {
    auto place = std::make_unique<Place>();
    place->choice = choice;
    if (!choice.profile.empty()) {
      place->profile = Profile::read(choice.profile);
      place->own = std::make_unique<Supply>(place->profile);
    }
    const Supply& supply = place->own ? *place->own : board_;
    place->sensor =
        make_sensor(choice.model, supply, options.imperfections, options.seed + places_.size());
    twi.attach(choice.address, *place->sensor);
    if (place->sensor->has_alert()) alerting.push_back(place->sensor.get());
    places_.push_back(std::move(place));
  }
  if (!options.conversions.empty()) {
    conversions_.open(options.conversions);
    if (!conversions_) throw RigError("cannot write " + options.conversions);
    conversions_ << std::fixed << std::setprecision(9) << "start_s,end_s\n";
    places_.front()->sensor->on_shunt_conversion = [this](double start_s, double end_s) {
      conversions_ << start_s << ',' << end_s << '\n';
    };
  }
  if (alerting.empty()) return;
  alert_.emplace(mcu, alerting);
  twi.on_byte = [this](std::uint64_t cycle) { alert_->refresh(cycle); };
}

void SensorBench::start_at(double rig_s) {
  board_.start_at(rig_s);
  for (auto& place : places_)
    if (place->own) place->own->start_at(rig_s);
}

void SensorBench::on_first_sample(std::function<void(double rig_s)> call) {
  const auto once = [this, call](double rig_s) {
    for (auto& place : places_) place->sensor->on_first_sample = nullptr;
    call(rig_s);
  };
  for (auto& place : places_) place->sensor->on_first_sample = once;
}

nlohmann::ordered_json SensorBench::to_json() const {
  auto sensors = nlohmann::ordered_json::array();
  for (const auto& place : places_) {
    nlohmann::ordered_json sensor = {{"model", place->sensor->model()},
                                     {"address", place->choice.address}};
    if (place->own) sensor["total_j"] = place->profile.until(place->profile.last_s()).energy_j;
    sensor.update(place->sensor->counts());
    sensors.push_back(std::move(sensor));
  }
  return sensors;
}

}  // namespace opjoule::rig
