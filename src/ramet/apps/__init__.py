"""What people and programs touch: thin surfaces over the library, with no behaviour of their own."""
