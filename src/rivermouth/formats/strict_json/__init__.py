"""JSON records to Arrow rows, strictly, as ``docs/json.md`` says.

There are two ways, and they give the same. The compiled way (``layout``, ``columns``) reads many
records at once; it takes only what it surely reads right. The exact way (``document``, ``values``)
reads one record after the other, by the letter of the specification, and says why a record is bad.
``decoder`` leads each record through one of them.
"""
