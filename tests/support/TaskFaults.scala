package anonspark.faults

import java.nio.file.{FileAlreadyExistsException, Files, Path, Paths, StandardOpenOption}
import java.util
import org.apache.spark.TaskContext
import org.apache.spark.api.plugin.{DriverPlugin, ExecutorPlugin, PluginContext, SparkPlugin}

/** Notes each attempt of each task, and disturbs some of them: see counted_tasks.py. */
class TaskFaults extends SparkPlugin {
  override def driverPlugin(): DriverPlugin = null
  override def executorPlugin(): ExecutorPlugin = new OfExecutor
}

class OfExecutor extends ExecutorPlugin {
  private var folder: Path = _

  override def init(context: PluginContext, extra: util.Map[String, String]): Unit =
    folder = Paths.get(context.conf.get("spark.anonspark.faults"))

  override def onTaskStart(): Unit = {
    val task = TaskContext.get()
    val name = s"${task.stageId()} ${task.partitionId()}"
    Files.write(folder.resolve("attempts"), s"$name ${task.attemptNumber()}\n".getBytes,
      StandardOpenOption.CREATE, StandardOpenOption.APPEND)
    val isFirst = task.attemptNumber() == 0 && task.stageAttemptNumber() == 0
    val Array(wanted, kind) = Files.readString(folder.resolve("wanted")).split(" ", 2)
    if (isFirst && task.partitionId() % 3 == wanted.toInt) kind match {
      case "late" => atEnd(task)(if (isNew(name)) throw new IllegalStateException("on purpose"))
      case "lost" => atEnd(task)(if (isNew(name)) Runtime.getRuntime.halt(137))
      case "copied" => waitForCopy(name)
      // Spark interrupts the sleep when the copy has succeeded.
      case "copied late" => atEnd(task) { waitForCopy(name); Thread.sleep(2000) }
      case _ =>
    }
  }

  /** Do something once, after all other work of a task: its output is committed by then. */
  private def atEnd(task: TaskContext)(what: => Unit): Unit =
    task.addTaskCompletionListener[Unit] { _ => what }

  private def isNew(name: String): Boolean =
    try { Files.createFile(folder.resolve("met").resolve(name)); true }
    catch { case _: FileAlreadyExistsException => false }

  /** Wait until Spark has started a copy of a task: ten seconds at most. */
  private def waitForCopy(name: String): Unit = {
    def isThere = Files.readString(folder.resolve("attempts")).contains(s"\n$name 1\n")
    val end = System.nanoTime() + 10000000000L
    while (!isThere && System.nanoTime() < end) Thread.sleep(20)
    if (isThere) isNew(name)
  }
}
