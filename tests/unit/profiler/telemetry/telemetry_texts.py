"""Small outputs of nvidia-smi and DCGM, written by hand after real ones."""

from __future__ import annotations

QUERY = (
    "timestamp, index, name, uuid, pci.bus_id, driver_version, pstate, utilization.gpu [%], "
    "utilization.memory [%], memory.total [MiB], memory.reserved [MiB], memory.used [MiB], "
    "memory.free [MiB], temperature.gpu, power.draw [W], power.limit [W], "
    "enforced.power.limit [W], clocks.current.sm [MHz], clocks.current.memory [MHz], "
    "clocks.max.sm [MHz], clocks.max.memory [MHz], clocks_event_reasons.active\n"
    "2026/02/28 23:59:59.500, 3, NVIDIA H200, GPU-0a, 00000000:5D:00.0, 580.95.05, P0, 87 %, "
    "41 %, 143771 MiB, 600 MiB, 120000 MiB, 23171 MiB, 61, 512.50 W, 700.00 W, 650.00 W, "
    "1755 MHz, 3201 MHz, 1980 MHz, 3201 MHz, 0x0000000000000004\n"
)
REPORT = """
==============NVSMI LOG==============

Timestamp                                              : Fri Jun 26 11:59:58 2026
Driver Version                                         : 595.71.05
CUDA Version                                           : 13.2

Attached GPUs                                          : 1
GPU 00000000:01:00.0
    Product Name                                       : NVIDIA L40S
    GPU UUID                                           : GPU-1a
    MIG Mode
        Current                                        : Disabled
    PCI
        Bus                                            : 0x01
        Tx Throughput                                  : 174169 KB/s
        Rx Throughput                                  : 1436230 KB/s
    Clocks Event Reasons
        Idle                                           : Not Active
        SW Power Cap                                   : Active
        HW Slowdown                                    : Not Active
            HW Thermal Slowdown                        : Active
            HW Power Brake Slowdown                    : Not Active
        SW Thermal Slowdown                            : Not Active
    Clocks Event Reasons Counters
        SW Power Capping                               : 17 us
    FB Memory Usage
        Total                                          : 46068 MiB
        Reserved                                       : 434 MiB
        Used                                           : 40000 MiB
        Free                                           : 5634 MiB
    BAR1 Memory Usage
        Total                                          : 65536 MiB
        Used                                           : 35 MiB
    Utilization
        GPU                                            : 98 %
        Memory                                         : 52 %
        Encoder                                        : 72 %
    Temperature
        GPU Current Temp                               : 71 C
        GPU Slowdown Temp                              : 96 C
    GPU Power Readings
        Average Power Draw                             : 284.03 W
        Instantaneous Power Draw                       : 286.41 W
        Current Power Limit                            : 350.00 W
        Max Power Limit                                : 400.00 W
    Module Power Readings
        Average Power Draw                             : N/A
    Clocks
        Graphics                                       : 2805 MHz
        SM                                             : 2505 MHz
        Memory                                         : 9001 MHz
    Max Clocks
        SM                                             : 2520 MHz
        Memory                                         : 9001 MHz
    Processes
        Process ID                        : 2165
            Used GPU Memory               : 25 MiB
"""
OLD_REPORT = """==============NVSMI LOG==============

Timestamp                           : Tue Mar  7 08:05:01 2017
Driver Version                      : 375.26

Attached GPUs                       : 1
GPU 0000:05:00.0
    Product Name                    : Tesla K80
    GPU UUID                        : GPU-2b
    Clocks Throttle Reasons
        Idle                        : Active
        SW Power Cap                : Not Active
        Unknown                     : Not Active
    FB Memory Usage
        Total                       : 11439 MiB
        Used                        : 2 MiB
        Free                        : 11437 MiB
    Utilization
        Gpu                         : 0 %
        Memory                      : N/A
    Power Readings
        Power Draw                  : 26.31 W
        Power Limit                 : 149.00 W
        Enforced Power Limit        : 125.00 W
    Clocks
        SM                          : 324 MHz
"""
XML = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
  <timestamp>Fri Jun 26 11:59:58 2026</timestamp>
  <driver_version>595.71.05</driver_version>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:01:00.0">
    <product_name>NVIDIA L40S</product_name>
    <mig_mode><current_mig>Disabled</current_mig></mig_mode>
    <mig_devices>None</mig_devices>
    <uuid>GPU-1a</uuid>
    <pci><tx_util>174169 KB/s</tx_util><rx_util>1436230 KB/s</rx_util></pci>
    <clocks_event_reasons>
      <clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>
      <clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>
      <clocks_event_reason_hw_thermal_slowdown>Active</clocks_event_reason_hw_thermal_slowdown>
    </clocks_event_reasons>
    <fb_memory_usage>
      <total>46068 MiB</total><reserved>434 MiB</reserved>
      <used>40000 MiB</used><free>5634 MiB</free>
    </fb_memory_usage>
    <bar1_memory_usage><total>65536 MiB</total><used>35 MiB</used></bar1_memory_usage>
    <utilization><gpu_util>98 %</gpu_util><memory_util>52 %</memory_util></utilization>
    <temperature><gpu_temp>71 C</gpu_temp></temperature>
    <gpu_power_readings>
      <average_power_draw>284.03 W</average_power_draw>
      <instant_power_draw>286.41 W</instant_power_draw>
      <current_power_limit>350.00 W</current_power_limit>
    </gpu_power_readings>
    <clocks><sm_clock>2505 MHz</sm_clock><mem_clock>9001 MHz</mem_clock></clocks>
    <max_clocks><sm_clock>2520 MHz</sm_clock><mem_clock>9001 MHz</mem_clock></max_clocks>
    <supported_clocks><supported_mem_clock><value>1 MHz</value></supported_mem_clock>
    </supported_clocks>
  </gpu>
</nvidia_smi_log>
"""
RULE = "+-----------------------------------------+------------------------+-----------------+\n"
TABLE = (
    "Tue Jul 14 09:00:26 2026       \n"
    + RULE
    + "| NVIDIA-SMI 590.48.01              Driver Version: 590.48.01      CUDA Version: 13.1  |\n"
    + "|   0  NVIDIA A10                     On  |   00000000:00:09.0 Off |              0 |\n"
    + "|  0%   42C    P0             98W /  150W |   20059MiB /  23028MiB |     97%    Default |\n"
    + "|                                         |                        |            Disabled |\n"
    + "|   1  NVIDIA GeForce RTX 4080 ...    Off |   00000000:0A:00.0  On |            N/A |\n"
    + "|ERR!  ERR! ERR!            N/A /   N/A   |     797MiB /  16376MiB |      N/A   Default |\n"
    + RULE
)
DMON = (
    "#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem   mclk   pclk     fb  rxpci  "
    "txpci\n"
    "#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %    MHz    MHz     MB   MB/s   "
    "MB/s\n"
    " 20261231   23:59:59      0    300     61     70     97     44   9501   1980  70000     15    "
    "120\n"
    " 20270101   00:00:01      0    301     62      -      -     45   9501   1980  70001     15    "
    "121\n"
)
PMON = (
    "# gpu         pid   type     sm    mem    enc    dec     fb    command\n"
    "# Idx           #    C/G      %      %      %      %     MB    name\n"
)
DCGM_DMON = (
    "#Entity   GRACT        SMACT        SMOCC        TENSO        DRAMA        FP32A        "
    "FP16A        POWER        FBUSD        TMPTR        GPUTL\n"
    "ID                                                                                     "
    "                W                                       C                 \n"
    "GPU 0     0.912        0.884        0.310        0.210        0.640        0.050        "
    "0.300        241.300      18342        61           97\n"
)
PAGE_LABELS = 'gpu="0",UUID="GPU-1",pci_bus_id="00:31:00.0",modelName="NVIDIA L4",Hostname="a"'
PAGE = f"""# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{{{PAGE_LABELS}}} 2040
DCGM_FI_DEV_MEM_CLOCK{{{PAGE_LABELS}}} 6251
DCGM_FI_DEV_GPU_TEMP{{{PAGE_LABELS}}} 61
DCGM_FI_DEV_POWER_USAGE{{{PAGE_LABELS}}} 70.365000
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{{{PAGE_LABELS}}} 4742776
DCGM_FI_DEV_GPU_UTIL{{{PAGE_LABELS}}} 99
DCGM_FI_DEV_MEM_COPY_UTIL{{{PAGE_LABELS}}} 40
DCGM_FI_DEV_FB_FREE{{{PAGE_LABELS}}} 2563
DCGM_FI_DEV_FB_USED{{{PAGE_LABELS}}} 20000
DCGM_FI_DEV_FB_RESERVED{{{PAGE_LABELS}}} 470
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{{{PAGE_LABELS}}} 36
DCGM_FI_DEV_XID_ERRORS{{{PAGE_LABELS}}} 0
DCGM_FI_PROF_GR_ENGINE_ACTIVE{{{PAGE_LABELS}}} 0.990000
DCGM_FI_PROF_SM_ACTIVE{{{PAGE_LABELS}}} 0.950000
DCGM_FI_PROF_SM_OCCUPANCY{{{PAGE_LABELS}}} 0.300000
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{PAGE_LABELS}}} 0.110000
DCGM_FI_PROF_DRAM_ACTIVE{{{PAGE_LABELS}}} 0.720000
DCGM_FI_PROF_PIPE_FP64_ACTIVE{{{PAGE_LABELS}}} 0.000000
DCGM_FI_PROF_PCIE_TX_BYTES{{{PAGE_LABELS}}} 112603
DCGM_FI_PROF_PCIE_RX_BYTES{{{PAGE_LABELS}}} 17544
"""

TRANSFER = """\
timestamp_sec,relative_time_sec,gpu_id,tx_pci_mb_per_sec,rx_pci_mb_per_sec,cumulative_tx_gb
1770189991.250,0.000,0,2.00,0.50,0.0000
1770189991.250,0.000,1,5.00,,0.0000
1770189992.250,1.000,0,3.00,96.00,0.0030
"""
