#!/bin/bash
# As Hadoop's own `hdfs`: namenode, datanode, dfs and dfsadmin. Its classes are Spark's Hadoop, so
# that both are of one version, and those of jars.lock.
set -euo pipefail

# HADOOP-19310: without --add-opens Java 17 forbids what the NameNode looks into.
run() {
  java -Xmx512m -XX:+UseSerialGC --add-opens=java.base/java.lang=ALL-UNNAMED \
    -cp "/etc/hdfs:$SPARK_HOME/jars/*:/opt/hdfs/*" "$@"
}
server=org.apache.hadoop.hdfs.server
command=$1
shift
case $command in
namenode)
  [[ -d /var/lib/hdfs/dfs/name/current ]] || run $server.namenode.NameNode -format -nonInteractive
  run $server.namenode.NameNode
  ;;
datanode) run $server.datanode.DataNode ;;
dfs) run org.apache.hadoop.fs.FsShell "$@" ;;
dfsadmin) run org.apache.hadoop.hdfs.tools.DFSAdmin "$@" ;;
*)
  echo "hdfs: $command is none of namenode, datanode, dfs, dfsadmin" >&2
  exit 2
  ;;
esac
