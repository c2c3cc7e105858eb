"""The power model that models.toml states for a board with a medium, found by their names."""

from opjoule.devices.profiles import BoardAndMedium, find_profile
from opjoule.simulation.models import Models
from opjoule.simulation.power_model import PowerModel


def load_model(board, medium, supply=None, chance=None):
    """The power model on the stated supply or on `supply`; `chance` draws the medium."""
    made = Models.stated().load(BoardAndMedium(find_profile(board), medium), chance)
    return PowerModel(made.board, made.medium, supply) if supply else made
