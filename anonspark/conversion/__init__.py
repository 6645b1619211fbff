"""Convert files of Stata, SPSS, SAS and Excel to Parquet, in a process of their own."""
