/* A program that answers --version and nothing else; nsys finds its importer by its own path, so
   a script would not do. */
#include <stdio.h>

int main(void) { return puts(VERSION) < 0; }
