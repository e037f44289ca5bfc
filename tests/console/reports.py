"""Kernel reports as several versions and processors print them, written for the tests."""

from __future__ import annotations

ARM64_NULL = """\
[   42.100001] Unable to handle kernel NULL pointer dereference at virtual address 0000000000000048
[   42.100002] Mem abort info:
[   42.100003]   ESR = 0x0000000096000004
[   42.100004]   EC = 0x25: DABT (current EL), IL = 32 bits
[   42.100005]   SET = 0, FnV = 0
[   42.100006]   EA = 0, S1PTW = 0
[   42.100007] user pgtable: 4k pages, 48-bit VAs, pgdp=0000000085a3c000
[   42.100008] [0000000000000048] pgd=0000000000000000, p4d=0000000000000000
[   42.100009] Internal error: Oops: 0000000096000004 [#1] PREEMPT SMP
[   42.100010] Modules linked in: xt_conntrack overlay
[   42.100011] CPU: 1 UID: 0 PID: 412 Comm: xdpsock Not tainted 6.12.0 #1
[   42.100012] Hardware name: Texas Instruments AM642 EVM (DT)
[   42.100013] pstate: 60000005 (nZCv daif -PAN -UAO -TCO -DIT -SSBS BTYPE=--)
[   42.100014] pc : am65_cpsw_nuss_rx_poll+0x24c/0x9a0
[   42.100015] lr : am65_cpsw_nuss_rx_poll+0x1a0/0x9a0
[   42.100016] sp : ffff80008259bd20
[   42.100017] x29: ffff80008259bd20 x28: ffff0000046a8000 x27: 0000000000000040
[   42.100018] Call trace:
[   42.100019]  am65_cpsw_nuss_rx_poll+0x24c/0x9a0 (P)
[   42.100020]  __napi_poll+0x38/0x178
[   42.100021]  net_rx_action+0x124/0x2d8
[   42.100022]  handle_softirqs+0x10c/0x240
[   42.100023]  __do_softirq+0x1c/0x28
[   42.100024] Code: f9400260 b4000040 f9002401 d503201f (f9402400)
[   42.100025] ---[ end trace 0000000000000000 ]---
[   42.100026] Kernel panic - not syncing: Oops: Fatal exception in interrupt
[   42.100027] SMP: stopping secondary CPUs
[   42.100028] Kernel Offset: disabled
[   42.100029] ---[ end Kernel panic - not syncing: Oops: Fatal exception in interrupt ]---
"""

X86_NULL = """\
[   17.000001] BUG: kernel NULL pointer dereference, address: 0000000000000010
[   17.000002] #PF: supervisor read access in kernel mode
[   17.000003] #PF: error_code(0x0000) - not-present page
[   17.000004] PGD 0 P4D 0
[   17.000005] Oops: 0000 [#1] PREEMPT SMP NOPTI
[   17.000006] CPU: 3 PID: 0 Comm: swapper/3 Not tainted 6.6.30 #12
[   17.000007] Hardware name: QEMU Standard PC (Q35 + ICH9, 2009), BIOS 1.16.2
[   17.000008] RIP: 0010:igb_clean_rx_irq_zc+0x11c/0x8a0 [igb]
[   17.000009] Code: 48 8b 45 10 <48> 8b 50 10
[   17.000010] RSP: 0018:ffffc90000110e28 EFLAGS: 00010246
[   17.000011] RAX: 0000000000000000 RBX: ffff88810a3b4000 RCX: 0000000000000001
[   17.000012] Call Trace:
[   17.000013]  <IRQ>
[   17.000014]  ? __die+0x24/0x70
[   17.000015]  ? page_fault_oops+0x82/0x160
[   17.000016]  igb_poll+0x3e5/0x4a0 [igb]
[   17.000017]  __napi_poll+0x2c/0x1b0
[   17.000018]  net_rx_action+0x2a5/0x360
[   17.000019]  </IRQ>
[   17.000020] Modules linked in: igb i2c_algo_bit dca
[   17.000021] ---[ end trace 0000000000000000 ]---
"""

ARM32_NULL = """\
[   12.000001] 8<--- cut here ---
[   12.000002] Unable to handle kernel NULL pointer dereference at virtual address 00000044 when read
[   12.000003] [00000044] *pgd=00000000
[   12.000004] Internal error: Oops: 5 [#1] SMP ARM
[   12.000005] Modules linked in:
[   12.000006] CPU: 0 PID: 1 Comm: swapper/0 Not tainted 6.1.80 #3
[   12.000007] Hardware name: Generic AM33XX (Flattened Device Tree)
[   12.000008] PC is at cpsw_ndo_open+0x88/0x5a4
[   12.000009] LR is at cpsw_ndo_open+0x80/0x5a4
[   12.000010] pc : [<c0876abc>]    lr : [<c0876ab4>]    psr: 60000013
[   12.000011] sp : e0825d30  ip : 00000000  fp : c1604d48
[   12.000012] Process swapper/0 (pid: 1, stack limit = 0x(ptrval))
[   12.000013]  cpsw_ndo_open from __dev_open+0x110/0x1a8
[   12.000014]  __dev_open from __dev_change_flags+0x19c/0x218
[   12.000015]  __dev_change_flags from dev_change_flags+0x18/0x48
[   12.000016]  dev_change_flags from ip_auto_config+0x228/0xf54
[   12.000017] ---[ end trace 0000000000000000 ]---
[   12.000018] Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b
[   12.000019] ---[ end Kernel panic - not syncing: Attempted to kill init! exitcode=0x0000000b ]---
"""

KASAN = """\
[   88.100000] ==================================================================
[   88.100001] BUG: KASAN: slab-use-after-free in igb_xdp_xmit_zc+0x1d0/0x5a8
[   88.100002] Read of size 8 at addr ffff0000c4a1b810 by task ksoftirqd/1/21
[   88.100003]
[   88.100004] CPU: 1 UID: 0 PID: 21 Comm: ksoftirqd/1 Not tainted 6.15.0-rc2 #7
[   88.100005] Hardware name: linux,dummy-virt (DT)
[   88.100006] Call trace:
[   88.100007]  show_stack+0x18/0x24 (C)
[   88.100008]  dump_stack_lvl+0x74/0x8c
[   88.100009]  print_report+0x10c/0x5c0
[   88.100010]  kasan_report+0xc8/0x118
[   88.100011]  __asan_report_load8_noabort+0x20/0x2c
[   88.100012]  igb_xmit_zc+0x1d0/0x5a8
[   88.100013]  igb_poll+0x340/0x1710
[   88.100014]  __napi_poll+0x98/0x400
[   88.100015]
[   88.100016] Allocated by task 1203:
[   88.100017]  kasan_save_stack+0x2c/0x58
[   88.100018]  xp_create_and_assign_umem+0x44/0x3f0
[   88.100019]
[   88.100020] Freed by task 1203:
[   88.100021]  kfree+0x100/0x398
[   88.100022]  xp_destroy+0x58/0x84
[   88.100023]
[   88.100024] The buggy address belongs to the object at ffff0000c4a1b800
[   88.100025] ==================================================================
"""

LOCKDEP = """\
[   55.000001] ======================================================
[   55.000002] WARNING: possible circular locking dependency detected
[   55.000003] 6.11.0-rc1+ #44 Not tainted
[   55.000004] ------------------------------------------------------
[   55.000005] ip/733 is trying to acquire lock:
[   55.000006] ffff8881034a0d28 (&adapter->lock){+.+.}-{3:3}, at: virtnet_open+0x60/0x1d0 [virtio_net]
[   55.000007]
[   55.000008] but task is already holding lock:
[   55.000009] ffffffff9b2f3f48 (rtnl_mutex){+.+.}-{3:3}, at: rtnetlink_rcv_msg+0x1a7/0x5c0
[   55.000010]
[   55.000011] which lock already depends on the new lock.
[   55.000012]
[   55.000013] stack backtrace:
[   55.000014] CPU: 0 UID: 0 PID: 733 Comm: ip Not tainted 6.11.0-rc1+ #44
[   55.000015] Call Trace:
[   55.000016]  <TASK>
[   55.000017]  dump_stack_lvl+0x6e/0xa0
[   55.000018]  print_circular_bug.cold+0x178/0x1be
[   55.000019]  check_noncircular+0x14b/0x170
[   55.000020]  __lock_acquire+0x1538/0x2180
[   55.000021]  lock_acquire+0xcb/0x2d0
[   55.000022]  __mutex_lock+0xa1/0xe80
[   55.000023]  virtnet_open+0x60/0x1d0 [virtio_net]
[   55.000024]  __dev_open+0x10e/0x1c0
[   55.000025]  </TASK>
"""

REFCOUNT = """\
[  101.000001] ------------[ cut here ]------------
[  101.000002] refcount_t: underflow; use-after-free.
[  101.000003] WARNING: CPU: 0 PID: 901 at lib/refcount.c:28 refcount_warn_saturate+0xf4/0x144
[  101.000004] Modules linked in: icssg_prueth
[  101.000005] CPU: 0 PID: 901 Comm: ip Not tainted 6.8.0 #1
[  101.000006] pc : refcount_warn_saturate+0xf4/0x144
[  101.000007] Call trace:
[  101.000008]  refcount_warn_saturate+0xf4/0x144
[  101.000009]  kobject_put+0x10c/0x120
[  101.000010]  put_device+0x14/0x20
[  101.000011]  prueth_xdp_setup+0x44/0x80 [icssg_prueth]
[  101.000012]  emac_ndo_bpf+0x50/0x70 [icssg_prueth]
[  101.000013]  dev_xdp_install+0x80/0x110
[  101.000014] ---[ end trace 0000000000000000 ]---
"""

WARN_7 = """\
[    9.000001] ------------[ cut here ]------------
[    9.000002] WARNING: drivers/net/ethernet/ti/am65-cpsw-nuss.c:488 at am65_cpsw_nuss_xdp_setup+0x50/0x80, CPU#1: ip/402
[    9.000003] Modules linked in:
[    9.000004] CPU: 1 UID: 0 PID: 402 Comm: ip Not tainted 7.0.0-rc1 #2 PREEMPT
[    9.000005] pc : am65_cpsw_nuss_xdp_setup+0x50/0x80
[    9.000006] Call trace:
[    9.000007]  am65_cpsw_nuss_xdp_setup+0x50/0x80 (P)
[    9.000008]  am65_cpsw_ndo_bpf+0x44/0x60
[    9.000009]  dev_xdp_install+0x80/0x110
[    9.000010] ---[ end trace 0000000000000000 ]---
"""

SOFT_LOCKUP = """\
[  300.000001] watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [xdp-bench:1201]
[  300.000002] Modules linked in: igb
[  300.000003] CPU: 1 UID: 0 PID: 1201 Comm: xdp-bench Not tainted 6.12.8 #1
[  300.000004] pc : igb_xmit_zc+0x9c/0x2f0 [igb]
[  300.000005] lr : igb_xmit_zc+0x60/0x2f0 [igb]
[  300.000006] Call trace:
[  300.000007]  igb_xmit_zc+0x9c/0x2f0 [igb]
[  300.000008]  igb_poll+0x144/0x610 [igb]
[  300.000009]  __napi_poll+0x38/0x178
[  300.000010] Kernel panic - not syncing: softlockup: hung tasks
"""

KERNEL_BUG = """\
[   66.000001] ------------[ cut here ]------------
[   66.000002] kernel BUG at net/core/skbuff.c:120!
[   66.000003] Internal error: Oops - BUG: 00000000f2000800 [#1] SMP
[   66.000004] CPU: 2 UID: 0 PID: 30 Comm: ksoftirqd/2 Not tainted 6.14.0 #9
[   66.000005] pc : skb_panic+0x58/0x5c
[   66.000006] Call trace:
[   66.000007]  skb_panic+0x58/0x5c (P)
[   66.000008]  skb_put+0x54/0x58
[   66.000009]  emac_rx_packet+0x1dc/0x620
[   66.000010]  icssg_napi_rx_poll+0xb0/0x1c0
[   66.000011] ---[ end trace 0000000000000000 ]---
[   66.000012] Kernel panic - not syncing: Oops - BUG: Fatal exception in interrupt
"""

RCU_X86 = """\
[  500.000001] rcu: INFO: rcu_sched self-detected stall on CPU
[  500.000002] rcu: \t2-....: (5250 ticks this GP) idle=3e4/1/0x4000000000000000 softirq=5/5 fqs=2604
[  500.000003] rcu: \t(t=5252 jiffies g=1001 q=25 ncpus=4)
[  500.000004] CPU: 2 PID: 700 Comm: iperf Not tainted 5.15.100 #1
[  500.000005] RIP: 0010:ixgbe_poll+0x14/0x60 [ixgbe]
[  500.000006] Call Trace:
[  500.000007]  <IRQ>
[  500.000008]  __napi_poll+0x2c/0x1b0
[  500.000009]  </IRQ>
"""

SLEEPING = """\
[   31.000001] BUG: sleeping function called from invalid context at kernel/locking/mutex.c:580
[   31.000002] in_atomic(): 1, irqs_disabled(): 0, non_block: 0, pid: 612, name: ethtool
[   31.000003] preempt_count: 201, expected: 0
[   31.000004] CPU: 0 PID: 612 Comm: ethtool Not tainted 6.6.0 #1
[   31.000005] Call trace:
[   31.000006]  dump_backtrace+0x9c/0x11c
[   31.000007]  show_stack+0x18/0x24
[   31.000008]  dump_stack_lvl+0x48/0x60
[   31.000009]  __might_resched+0x164/0x1bc
[   31.000010]  __might_sleep+0x48/0x7c
[   31.000011]  mutex_lock+0x24/0x60
[   31.000012]  am65_cpsw_get_ethtool_stats+0x40/0xd0
[   31.000013]  dev_ethtool+0xd50/0x2b40
"""

SYSRQ_PANIC = """\
[   25.000001] sysrq: Trigger a crash
[   25.000002] Kernel panic - not syncing: sysrq triggered crash
[   25.000003] CPU: 0 UID: 0 PID: 310 Comm: sh Not tainted 6.12.0-13-arm64 #1
[   25.000004] Hardware name: linux,dummy-virt (DT)
[   25.000005] Call trace:
[   25.000006]  dump_backtrace+0x9c/0x128
[   25.000007]  show_stack+0x20/0x38
[   25.000008]  panic+0x360/0x3d8
[   25.000009]  sysrq_handle_crash+0x20/0x28
[   25.000010]  __handle_sysrq+0x9c/0x1b8
[   25.000011]  write_sysrq_trigger+0xa4/0xf8
[   25.000012] SMP: stopping secondary CPUs
[   25.000013] ---[ end Kernel panic - not syncing: sysrq triggered crash ]---
"""

UBSAN = """\
[    3.000001] ------------[ cut here ]------------
[    3.000002] UBSAN: array-index-out-of-bounds in drivers/net/ethernet/ti/cpsw_priv.c:712:20
[    3.000003] index 9 is out of range for type 'cpsw_slave [8]'
[    3.000004] CPU: 0 PID: 1 Comm: swapper/0 Not tainted 6.9.0 #1
[    3.000005] Call trace:
[    3.000006]  dump_backtrace+0x90/0xe8
[    3.000007]  ubsan_epilogue+0x10/0x48
[    3.000008]  __ubsan_handle_out_of_bounds+0x80/0xb0
[    3.000009]  cpsw_set_slave+0x30/0x58
[    3.000010]  cpsw_probe+0x410/0x900
[    3.000011] ---[ end trace ]---
"""

# name -> (text, kind, driver, function, its first bad line contains)
HUNG_ARM64 = """\
[   16.256353] INFO: task python3:175 blocked for more than 2 seconds.
[   16.256678]       Not tainted 7.3.4+deb13-arm64 #1 Debian 7.3.4-1~bpo13+1
[   16.256812] "echo 0 > /proc/sys/kernel/hung_task_timeout_secs" disables this message.
[   16.256926] task:python3         state:D stack:0     pid:175   tgid:175   ppid:162    task_flags:0x400100 flags:0x00000000
[   16.258096] Call trace:
[   16.258281]  __switch_to+0x194/0x348 (T)
[   16.258721]  __schedule+0x45c/0x12a8
[   16.258744]  schedule+0x3c/0xe8
[   16.258762]  schedule_preempt_disabled+0x2c/0x58
[   16.258783]  __mutex_lock.constprop.0+0x5e8/0xab0
[   16.258804]  __mutex_lock_slowpath+0x1c/0x30
[   16.258823]  mutex_lock+0x50/0x68
[   16.258842]  anon_pipe_prefill_and_lock+0xcc/0x280
[   16.258867]  anon_pipe_write+0x60/0x638
[   16.258887]  vfs_write+0x314/0x380
[   16.258909]  ksys_write+0xf4/0x120
[   16.258928]  __arm64_sys_write+0x20/0x40
[   16.258948]  invoke_syscall+0xa4/0x120
[   16.259026]  el0_svc+0x40/0x268
[   16.262064] INFO: task python3:175 is blocked on a mutex likely owned by task python3:176.
"""

SERROR = """\
[    3.112233] SError Interrupt on CPU0, code 0x00000000bf000000 -- SError
[    3.112240] CPU: 0 UID: 0 PID: 1 Comm: swapper/0 Not tainted 6.12.0 #1
[    3.112245] Hardware name: Texas Instruments AM642 EVM (DT)
[    3.112250] pstate: 60000005 (nZCv daif -PAN -UAO -TCO -DIT -SSBS BTYPE=--)
[    3.112255] pc : regmap_mmio_read32le+0x8/0x20
[    3.112258] lr : regmap_mmio_read+0x44/0x70
[    3.112300] Kernel panic - not syncing: Asynchronous SError Interrupt
[    3.112305] CPU: 0 UID: 0 PID: 1 Comm: swapper/0 Not tainted 6.12.0 #1
[    3.112310] Hardware name: Texas Instruments AM642 EVM (DT)
[    3.112312] Call trace:
[    3.112315]  dump_backtrace+0x94/0xec
[    3.112318]  show_stack+0x18/0x24
[    3.112320]  dump_stack_lvl+0x78/0x90
[    3.112322]  dump_stack+0x18/0x24
[    3.112324]  panic+0x35c/0x3d0
[    3.112326]  nmi_panic+0x48/0x98
[    3.112328]  arm64_serror_panic+0x64/0x70
[    3.112330]  do_serror+0x28/0x68
[    3.112332]  el1h_64_error_handler+0x30/0x48
[    3.112334]  el1h_64_error+0x64/0x68
[    3.112336]  regmap_mmio_read32le+0x8/0x20
[    3.112338]  _regmap_read+0x60/0xc8
[    3.112340]  regmap_read+0x4c/0x78
[    3.112342]  icss_iep_probe+0x1a8/0x380
[    3.112344]  platform_probe+0x68/0xd8
[    3.112346]  really_probe+0xbc/0x29c
[    3.112350] SMP: stopping secondary CPUs
[    3.112400] ---[ end Kernel panic - not syncing: Asynchronous SError Interrupt ]---
"""

RCU_ARM64 = """\
[  121.000001] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:
[  121.000010] rcu: 	1-...0: (1 GPs behind) idle=5a2c/1/0x4000000000000000 softirq=2211/2212 fqs=2600
[  121.000020] rcu: 	(detected by 0, t=5252 jiffies, g=1789, q=23 ncpus=2)
[  121.000030] Sending NMI from CPU 0 to CPUs 1:
[  131.000100] Task dump for CPU 1:
[  131.000110] task:irq/57-8000000. state:R  running task     stack:0     pid:388   ppid:2      flags:0x0000000a
[  131.000120] Call trace:
[  131.000130]  __switch_to+0xe0/0x124
[  131.000140]  am65_cpsw_nuss_tx_compl_packets_2g+0x1d4/0x3f0
[  131.000150]  am65_cpsw_nuss_tx_poll+0x48/0x120
[  131.000160]  __napi_poll+0x38/0x178
[  131.000170]  net_rx_action+0x124/0x2d8
"""

WORKQUEUE = """\
[  240.000001] BUG: workqueue lockup - pool cpus=0 node=0 flags=0x0 nice=0 stuck for 33s!
[  240.000010] Showing busy workqueues and worker pools:
[  240.000020] workqueue events: flags=0x0
[  240.000030]   pwq 0: cpus=0 node=0 flags=0x0 nice=0 active=2 refcnt=3
[  240.000040]     in-flight: 9:prueth_hsr_work
"""

DMA_API = """\
[   55.500001] ------------[ cut here ]------------
[   55.500010] DMA-API: am65-cpsw-nuss 8000000.ethernet: device driver frees DMA memory with different size [device address=0x00000000f8a4c000] [map size=1522 bytes] [unmap size=1536 bytes]
[   55.500020] WARNING: CPU: 1 PID: 0 at kernel/dma/debug.c:1008 check_unmap+0x5b8/0x8f0
[   55.500030] Modules linked in: am65_cpsw_nuss
[   55.500040] CPU: 1 PID: 0 Comm: swapper/1 Not tainted 6.6.58 #2
[   55.500050] pstate: 604000c5 (nZCv daIF +PAN -UAO -TCO -DIT -SSBS BTYPE=--)
[   55.500060] pc : check_unmap+0x5b8/0x8f0
[   55.500070] lr : check_unmap+0x5b8/0x8f0
[   55.500080] Call trace:
[   55.500090]  check_unmap+0x5b8/0x8f0
[   55.500100]  debug_dma_unmap_page+0x78/0x90
[   55.500110]  dma_unmap_page_attrs+0xf4/0x1f0
[   55.500120]  am65_cpsw_nuss_xmit_free+0x88/0x138
[   55.500130]  am65_cpsw_nuss_tx_poll+0x1a0/0x3c0
[   55.500140]  __napi_poll+0x38/0x178
[   55.500150] ---[ end trace 0000000000000000 ]---
"""

KFENCE = """\
[   77.000001] ==================================================================
[   77.000010] BUG: KFENCE: use-after-free read in prueth_xmit_free+0x34/0xb0
[   77.000020]
[   77.000030] Use-after-free read at 0x00000000c3a1e9b0 (in kfence-#112):
[   77.000040]  prueth_xmit_free+0x34/0xb0 [icssg_prueth]
[   77.000050]  emac_tx_complete_packets+0x1b4/0x2a0 [icssg_prueth]
[   77.000060]  __napi_poll+0x38/0x178
[   77.000070]
[   77.000080] kfence-#112: 0x00000000c3a1e980-0x00000000c3a1ea7f, size=256, cache=kmalloc-256
[   77.000090]
[   77.000100] allocated by task 0 on cpu 1 at 76.998877s (0.001123s ago):
[   77.000110]  __alloc_skb+0x118/0x170
[   77.000120] ==================================================================
"""

LIST = """\
[   12.345678] list_del corruption. prev->next should be ffff000004a1b2c8, but was dead000000000122. (prev=ffff000004a1b008)
[   12.345690] ------------[ cut here ]------------
[   12.345700] kernel BUG at lib/list_debug.c:62!
[   12.345710] Internal error: Oops - BUG: 00000000f2000800 [#1] PREEMPT SMP
[   12.345720] Modules linked in: icssg_prueth
[   12.345730] CPU: 0 UID: 0 PID: 411 Comm: xdpsock Not tainted 6.13.0 #4
[   12.345740] pc : __list_del_entry_valid_or_report+0x100/0x10c
[   12.345750] lr : __list_del_entry_valid_or_report+0x100/0x10c
[   12.345760] Call trace:
[   12.345770]  __list_del_entry_valid_or_report+0x100/0x10c (P)
[   12.345780]  xp_free+0x34/0xb0
[   12.345790]  prueth_reset_rx_chan+0x120/0x1c0 [icssg_prueth]
[   12.345800]  emac_ndo_stop+0xe4/0x220 [icssg_prueth]
[   12.345810]  __dev_close_many+0xa8/0x120
[   12.345820] ---[ end trace 0000000000000000 ]---
"""

OOM = """\
[   88.000001] iperf3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0
[   88.000010] CPU: 0 PID: 512 Comm: iperf3 Not tainted 6.6.30 #1
[   88.000020] Call trace:
[   88.000030]  dump_header+0x48/0x1f0
[   88.000040]  oom_kill_process+0x1f0/0x300
[   88.000050]  out_of_memory+0xec/0x310
[   88.000060] Mem-Info:
[   88.000070] Out of memory: Killed process 512 (iperf3) total-vm:812344kB, anon-rss:402312kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:900kB oom_score_adj:0
"""

SOFTLOCK_ARM64 = """\
[  160.123456] watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [napi/eth1-33:1203]
[  160.123500] Modules linked in: icssg_prueth
[  160.123510] CPU: 1 UID: 0 PID: 1203 Comm: napi/eth1-33 Not tainted 6.15.0 #9
[  160.123520] pstate: 20000005 (nzCv daif -PAN -UAO -TCO -DIT -SSBS BTYPE=--)
[  160.123530] pc : emac_napi_rx_poll+0x3c0/0x5d0 [icssg_prueth]
[  160.123540] lr : emac_napi_rx_poll+0x124/0x5d0 [icssg_prueth]
[  160.123550] Call trace:
[  160.123560]  emac_napi_rx_poll+0x3c0/0x5d0 [icssg_prueth] (P)
[  160.123570]  __napi_poll.constprop.0+0x38/0x178
[  160.123580]  napi_threaded_poll_loop+0x1b8/0x2a0
"""

REPORTS = {
    "arm64_null": (ARM64_NULL, "oops", "am65-cpsw-nuss", "am65_cpsw_nuss_rx_poll", "Unable to"),
    "x86_null": (X86_NULL, "oops", "igb", "igb_clean_rx_irq_zc", "BUG: kernel NULL"),
    "arm32_null": (ARM32_NULL, "oops", "cpsw", "cpsw_ndo_open", "Unable to handle"),
    "kasan": (KASAN, "kasan", "igb", "igb_xmit_zc", "BUG: KASAN"),
    "lockdep": (LOCKDEP, "lockdep", "virtio_net", "virtnet_open", "possible circular"),
    "refcount": (REFCOUNT, "refcount", "icssg-prueth", "prueth_xdp_setup", "underflow"),
    "warn_7": (WARN_7, "warn", "am65-cpsw-nuss", "am65_cpsw_nuss_xdp_setup", "WARNING: drivers"),
    "soft_lockup": (SOFT_LOCKUP, "soft_lockup", "igb", "igb_xmit_zc", "soft lockup"),
    "kernel_bug": (KERNEL_BUG, "bug", "icssg-prueth", "emac_rx_packet", "kernel BUG at"),
    "rcu_x86": (RCU_X86, "rcu_stall", "ixgbe", "ixgbe_poll", "rcu_sched self-detected"),
    "sleeping": (
        SLEEPING,
        "atomic_sleep",
        "am65-cpsw-nuss",
        "am65_cpsw_get_ethtool_stats",
        "BUG: sl",
    ),
    "sysrq": (SYSRQ_PANIC, "panic", "sysrq", "sysrq_handle_crash", "sysrq triggered"),
    "ubsan": (UBSAN, "ubsan", "cpsw", "cpsw_set_slave", "UBSAN: "),
    "hung_arm64": (
        HUNG_ARM64,
        "hung_task",
        None,
        "anon_pipe_prefill_and_lock",
        "blocked for more than",
    ),
    "serror": (SERROR, "oops", "icssg-prueth", "icss_iep_probe", "SError Interrupt"),
    "rcu_arm64": (
        RCU_ARM64,
        "rcu_stall",
        "am65-cpsw-nuss",
        "am65_cpsw_nuss_tx_compl_packets_2g",
        "detected stalls",
    ),
    "workqueue": (WORKQUEUE, "workqueue_lockup", None, None, "workqueue lockup"),
    "dma_api": (DMA_API, "warn", "am65-cpsw-nuss", "am65_cpsw_nuss_xmit_free", "DMA-API"),
    "kfence": (KFENCE, "kfence", "icssg-prueth", "prueth_xmit_free", "BUG: KFENCE"),
    "list": (
        LIST,
        "list_corruption",
        "icssg-prueth",
        "prueth_reset_rx_chan",
        "list_del corruption",
    ),
    "oom": (OOM, "oom", None, None, "invoked oom-killer"),
    "soft_lockup_arm64": (
        SOFTLOCK_ARM64,
        "soft_lockup",
        "icssg-prueth",
        "emac_napi_rx_poll",
        "soft lockup",
    ),
}
