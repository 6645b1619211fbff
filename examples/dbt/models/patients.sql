-- Raw records about people: a view, so that the warehouse holds no copy of them.
{{ config(materialized="view") }}
select * from read_parquet('{{ var("patients") }}')
