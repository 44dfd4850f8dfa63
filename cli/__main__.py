"""`python -m stallscope`."""

from stallscope.app import main

if __name__ == "__main__":
    main()
