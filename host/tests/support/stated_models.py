"""The power model of a board with a medium by their names, as models.toml states it."""

from opjoule.devices.profiles import BoardAndMedium, find_profile
from opjoule.simulation.models import Models
from opjoule.simulation.power_model import PowerModel


def load_model(board, medium, supply=None, chance=None):
    """On the stated supply, or this one; `chance` draws the medium."""
    made = Models.stated().load(BoardAndMedium(find_profile(board), medium), chance)
    return PowerModel(made.board, made.medium, supply) if supply else made
