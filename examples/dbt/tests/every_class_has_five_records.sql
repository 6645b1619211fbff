-- dbt counts again, without anonspark.
select age, sex, city, count(*) as records
from {{ ref("patients_published") }}
group by all
having count(*) < 5
