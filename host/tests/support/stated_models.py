"""The power model of a board with a medium by their names, as models.toml states it."""

from opjoule.devices.profiles import find_profile
from opjoule.simulation.models import Models
from opjoule.simulation.power_model import PowerModel


def load_model(board, medium, supply=None, chance=None):
    """On the stated supply, or this one; `chance` draws the medium."""
    made = Models.stated().load(find_profile(board).with_medium(medium), chance)
    return PowerModel(made.board, made.medium, supply) if supply else made
