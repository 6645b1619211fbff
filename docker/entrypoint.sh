#!/bin/bash
# Runs the command that it is given. "driver" and "executor" are what Spark on Kubernetes calls an
# image with; the variables are those that Spark sets for them.
set -euo pipefail

case ${1:-} in
driver)
  shift
  exec spark-submit --conf "spark.driver.bindAddress=$SPARK_DRIVER_BIND_ADDRESS" \
    --deploy-mode client "$@"
  ;;
executor)
  # SPARK_JAVA_OPT_0, SPARK_JAVA_OPT_1, ...: an option each, which may contain blanks.
  options=()
  for ((number = 0; ; number++)); do
    name=SPARK_JAVA_OPT_$number
    [[ -v $name ]] || break
    options+=("${!name}")
  done
  exec java ${options[@]+"${options[@]}"} \
    "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
    -cp "$SPARK_CONF_DIR:${HADOOP_CONF_DIR:+$HADOOP_CONF_DIR:}$SPARK_HOME/jars/*${SPARK_EXTRA_CLASSPATH:+:$SPARK_EXTRA_CLASSPATH}" \
    org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
    --driver-url "$SPARK_DRIVER_URL" \
    --executor-id "$SPARK_EXECUTOR_ID" \
    --cores "$SPARK_EXECUTOR_CORES" \
    --app-id "$SPARK_APPLICATION_ID" \
    --hostname "$SPARK_EXECUTOR_POD_IP" \
    --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
    --podName "$SPARK_EXECUTOR_POD_NAME"
  ;;
*)
  exec "$@"
  ;;
esac
