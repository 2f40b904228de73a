"""Columns of prose or names into numbers: TF-IDF, or vectors of a sentence-embedding model.

Such a model is installed by the user, as a folder that sentence-transformers wrote or a package that holds
one: its files are read, its code is not run, weights are safetensors, and nothing is downloaded. Vectors are
kept in the user's cache, by the content of model and texts, since every verb reads the tables anew.
"""

import hashlib
import io
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import scipy.sparse as sp

from ..benchmark_files import cache_folder
from ..errors import InputError, argument
from ..storage import write_atomically
from .npz import read_array

Array = npt.NDArray[Any]
MODULES = "modules.json"  # what makes a folder one of sentence-transformers
BATCH = 64
MAX_WORDS = 5000  # TF-IDF keeps this many of the most frequent words, and as many pieces of words
SHORT = 100  # characters: names and titles, in which few words come twice; of longer texts words are enough


def text_block(column: pl.Series, place: str, columns: Any, known: slice) -> tuple[list[str], sp.csr_matrix]:
    """TF-IDF with the words of the known rows. Names of its columns, and the columns."""
    from sklearn.feature_extraction.text import TfidfVectorizer  # half a second that other tables are spared

    texts = column.fill_null("").to_list()
    kinds: dict[str, dict[str, Any]] = {":": {}}
    if columns.reading > 1 and float(column[known].str.len_chars().median() or 0) <= SHORT:  # type: ignore[arg-type]
        kinds["~"] = {"analyzer": "char_wb", "ngram_range": (2, 4), "sublinear_tf": True}
    names, blocks = [], []
    try:
        for mark, options in kinds.items():
            vectorizer = TfidfVectorizer(max_features=MAX_WORDS, dtype=np.float32, **options)
            blocks.append(sp.csr_matrix(vectorizer.fit(texts[known]).transform(texts)))
            names += [f"{column.name}{mark}{word}" for word in vectorizer.get_feature_names_out()]
    except ValueError:
        raise InputError(
            f"{place}, column {column.name!r} holds no words; leave it out: {argument('ignore', column.name)}"
        ) from None
    return names, sp.hstack(blocks, format="csr") if len(blocks) > 1 else blocks[0]


def sentence_block(column: pl.Series, model: str, known: slice) -> tuple[list[str], Array]:
    """A unit vector for each text, zeros where there is none. Names of its columns, and the columns."""
    folder = model_folder(model)
    texts = column.fill_null("").to_list()
    # Apart, so that the bits of known rows do not depend on those that came later.
    parts = [texts[known], texts[known.stop :] if known.stop is not None else []]
    vectors = np.concatenate([embedded(part, folder) for part in parts if part])
    return [f"{column.name} (vector {k + 1})" for k in range(vectors.shape[1])], vectors


def model_folder(model: str) -> Path:
    """The model's folder: as named, or within the package of this name."""
    folder, said = Path(model).expanduser(), argument("text_model", model)
    if not folder.is_dir():
        package = model.replace("-", "_")
        found = find_spec(package) if package.isidentifier() else None
        places = (found.submodule_search_locations if found else None) or []
        inside = sorted(file.parent for place in places for file in Path(place).rglob(MODULES))
        if not inside:
            raise InputError(
                f"{said}: neither a folder nor an installed package with a sentence-embedding model; "
                "nothing is downloaded, so save one with SentenceTransformer.save, or install a package "
                "that holds one"
            )
        folder = inside[0]
    if not (folder / MODULES).is_file():
        raise InputError(f"{said}: no {MODULES} in it; name a folder that sentence-transformers wrote")
    if not any(folder.rglob("*.safetensors")):
        raise InputError(f"{said}: no weights as .safetensors in it; other kinds can run code, save it anew")
    return folder


def embedded(texts: Sequence[str], folder: Path) -> Array:
    """[texts, width] float32, from the cache if the same model read the same texts before."""
    digest = hashlib.sha256()
    read = [path for path in folder.rglob("*") if path.suffix in (".json", ".safetensors", ".txt")]
    for file in sorted(read):
        with open(file, "rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    for text in texts:
        digest.update(f"{len(text)}:{text}".encode())
    path = cache_folder() / "sentences" / f"{digest.hexdigest()}.npy"
    if path.is_file():
        found = read_array(path.read_bytes(), path)
        if found.ndim == 2 and len(found) == len(texts) and found.dtype == np.float32:
            return found
    vectors = _encode(texts, folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        content = io.BytesIO()
        np.save(content, vectors, allow_pickle=False)
        write_atomically(path, content.getvalue())
    except (OSError, InputError):
        pass  # a cache that cannot be written costs time, and nothing else
    return vectors


def _encode(texts: Sequence[str], folder: Path) -> Array:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when the library is imported
    try:
        from sentence_transformers import SentenceTransformer  # an extra, and seconds to import
        from transformers.utils import logging
    except ImportError:
        raise InputError(
            f"{argument('text_model', folder)} needs sentence-transformers: pip install 'conjoint[sentences]'"
        ) from None
    logging.disable_progress_bar()
    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        weights = {"use_safetensors": True}
        model = SentenceTransformer(str(folder), device="cpu", model_kwargs=weights, **options)
    except (OSError, ValueError, KeyError, RuntimeError, TypeError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{argument('text_model', folder)}: cannot be loaded ({reason})") from None
    finally:
        logging.enable_progress_bar()
    different = list(dict.fromkeys(text for text in texts if text))
    encode: dict[str, Any] = {"batch_size": BATCH, "show_progress_bar": False, "normalize_embeddings": True}
    vectors = np.asarray(model.encode(different or ["."], **encode), dtype=np.float32)
    made = np.zeros((len(texts), vectors.shape[1]), dtype=np.float32)
    place = {text: row for row, text in enumerate(different)}
    rows = np.array([place.get(text, -1) for text in texts])
    made[rows >= 0] = vectors[rows[rows >= 0]]
    return made
