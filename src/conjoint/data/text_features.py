"""Columns of prose or names into numbers: TF-IDF of words and, for short texts, of pieces of words."""

from typing import Any

import numpy as np
import polars as pl
import scipy.sparse as sp

from ..errors import InputError, argument

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
