"""How causes of slowness lead to one another: the edges as data, and the walk over them."""
