"""The power model that models.toml states for a board with a medium, found by their names."""

from opjoule.bench.simulation.power_model import Models, PowerModel
from opjoule.boards.profiles import BoardAndMedium, find_profile


def load_model(board, medium, supply=None, seed=None):
    """The power model on the stated supply or on `supply`; a seed draws board and medium."""
    made = Models.stated().load(BoardAndMedium(find_profile(board), medium), seed)
    return PowerModel(made.board, made.medium, supply) if supply else made
